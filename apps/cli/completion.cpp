// apps/cli/completion.cpp -- prints a script, or names.
#include "apps/cli/completion.hpp"

#include "apps/cli/completion_table.hpp"
#include "apps/remote/remote.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>

namespace shoal::apps {
namespace {

/// Somebody waits at the keyboard; a node on this machine answers in a few ms.
constexpr std::chrono::milliseconds patience{1000};

/// Names are other peers' texts: a shell must find nothing to expand in them.
bool is_plain(const std::string& name) {
  return !name.empty() && !name.starts_with('-')
         && std::ranges::all_of(name, [](unsigned char c) {
              return std::isalnum(c) || c == '-' || c == '_' || c == '.'
                     || c == '@' || c == '+' || c == ',' || c == '/';
            });
}

int print_names(const std::string& what) {
  runtime::client_config config = client_of({});
  config.timeout = patience;
  runtime::client client(std::move(config));
  if (client.connect())
    return exit_done;
  const auto status = status_of(client);
  if (!status)
    return exit_done;
  std::set<std::string> names;
  if (what == "peers")
    for (const auto& peer : (*status)["peers"])
      names.insert(text_of(peer, "name"));
  else
    for (const auto& job : (*status)["jobs"])
      if (what == "jobs"
          || (text_of(job, "kind") == "serve"
              && text_of(job, "state") == "running"))
        names.insert(text_of(job, "name"));
  for (const std::string& name : names)
    if (is_plain(name))
      std::cout << name << "\n";
  return exit_done;
}

} // namespace

int run_completion(const CLI::App& app, const completion_options& o) {
  const auto table = [&app] { return completions_of(app); };
  if (o.what == "bash")
    std::cout << bash_completion(table());
  else if (o.what == "zsh")
    std::cout << zsh_completion(table());
  else if (o.what == "fish")
    std::cout << fish_completion(table());
  else
    return print_names(o.what);
  return exit_done;
}

} // namespace shoal::apps
