// apps/cli/cli.cpp -- flags, environment and configuration file, in this order.
//
// Every flag of a subcommand is also the variable SHOAL_<FLAG> and the key
// <flag> in the subcommand's table of the configuration file (--config FILE,
// by default shoal/shoal.toml below the user's configuration directory).
// The options themselves are in cli_options.cpp.
#include "apps/cli/cli_words.hpp"
#include "apps/cli/command_set.hpp"
#include "apps/cli/help_format.hpp"
#include "apps/common/version.hpp"
#include "apps/terminal/shown_stream.hpp"

#include <CLI/CLI.hpp>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <system_error>
#include <variant>

namespace shoal::apps {
namespace {

/// The whole command line, whose requirements are checked when other sources have
/// filled it in.
class whole_line final : public CLI::App {
public:
  using CLI::App::App;

  void parse_words(int argc, char** argv) {
    try {
      parse(argc, argv);
      return;
    } catch (const CLI::RequiredError&) {
      if (get_subcommands().empty())
        throw;
    } catch (const CLI::RequiresError&) {
    }
    if (const auto left = remaining(true); !left.empty())
      throw CLI::ExtrasError(left);
  }
  void check_requirements() { _process_requirements(); }
};

/// "SHOAL_LISTEN (--listen), ..."
void say_sources(const std::vector<option_source>& all) {
  std::string text;
  for (const auto& [option, source] : all)
    text += (text.empty() ? "" : ", ") + source + " (--" + option + ")";
  if (!text.empty())
    std::cerr << "shoal: not all options were on the command line: " << text
              << "\n";
}

/// The keys of a run that are set so.
std::map<std::string, std::string>
run_keys_of(const std::vector<option_source>& all) {
  static const std::map<std::string, std::string> short_names{
    {"data", "data.paths"},
    {"tokenizer", "data.tokenizer"},
    {"vocab-size", "model.vocab_size"},
    {"priority", "job.priority"}};
  std::map<std::string, std::string> out;
  for (const auto& [option, source] : all)
    if (const auto at = short_names.find(option); at != short_names.end())
      out[at->second] = source;
    else if (option.find('.') != std::string::npos)
      out[option] = source;
  return out;
}

int run_chosen(whole_line& app, command_set& set, const runners& run,
               const std::filesystem::path& config) {
  const configuration file = read_configuration(config);
  if (auto wrong = mistyped_variable(app); !wrong.empty())
    throw usage_error{wrong};
  if (auto wrong = unknown_key(app, file); !wrong.empty())
    throw usage_error{wrong};
  CLI::App& command = *app.get_subcommands().front();
  const auto sources = fill_in(command, file);
  for (run_options* o :
       {&set.train.run, &set.plan.run, &set.init.run, &set.chaos.run})
    o->sources = run_keys_of(sources);
  try {
    app.check_requirements();
  } catch (const CLI::ExcludesError&) {
    say_sources(sources);
    throw;
  }
  if (auto wrong = empty_word(command); !wrong.empty()) {
    say_sources(sources);
    throw usage_error{wrong};
  }
  const int code = run.at(&command)();
  // The command knows options only, wherever their values came from.
  if (code == exit_usage)
    say_sources(sources);
  return code;
}

/// For a command's help: with one of its own options as the example; empty if
/// it has none.
std::string ways_to_set(const CLI::App& command) {
  std::string option;
  for (const CLI::Option* each : command.get_options())
    for (const std::string& name : each->get_lnames())
      if (name == "out" || (option.empty() && name != "help"))
        option = name;
  if (option.empty())
    return {};
  return "Each option is also a variable (" + variable_of(option) + " for --"
         + option + ") and a key of [" + command.get_name()
         + "] in shoal.toml.";
}

/// Why stdout has not taken all that was written to it; empty: it has, or its
/// reader has had enough and is gone.
std::string unwritten_output() {
  errno = 0;
  const bool whole = bool(std::cout.flush());
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && whole)
    return {};
  const int reason = errno;
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (reason == EPIPE || (::poll(&out, 1, 0) > 0 && (out.revents & POLLERR)))
    return {};
  // The C library keeps no reason of an earlier failure.
  return reason != 0 ? std::generic_category().message(reason)
                     : "its disk may be full";
}

int parse_and_run(int argc, char** argv) {
  whole_line app{
    "shoal -- equal peers that train and serve language models "
    "together.\n"
    "Start one `shoal node` on each machine; they find each other. "
    "Then `shoal train` or `shoal serve`."};
  app.name("shoal");
  app.require_subcommand(1);
  app.formatter(make_help_format());
  app.option_defaults()->always_capture_default();
  app.footer(
    std::string("`shoal COMMAND --help` lists a command's options, with "
                "their defaults.\n")
    + exit_codes_text());
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", std::string("shoal ") + program_version(),
                       "print the version");
  std::filesystem::path config;
  app
    .add_option("--config", config,
                "configuration file with a table for each command "
                "(default: ~/.config/shoal/shoal.toml)")
    ->type_name("FILE")
    ->check(CLI::ExistingFile);
  command_set set;
  runners run;
  add_node(app, set, run);
  add_jobs(app, set, run);
  add_train(app, set, run);
  add_serve(app, set, run);
  add_model(app, set, run);
  add_reference(app, set, run);
  for (auto& [command, unused] : run)
    command->footer(ways_to_set(*command));
  try {
    app.parse_words(argc, argv);
    return run_chosen(app, set, run, config);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::string unknown = unknown_word(app, argc, argv);
    if (unknown.empty()
        && e.get_exit_code() == int(CLI::ExitCodes::ExtrasError))
      unknown = stray_word(app);
    if (unknown.empty())
      unknown = missing_word(app, e);
    if (unknown.empty())
      unknown = wrong_word(app, e);
    std::cerr << "shoal: " << (unknown.empty() ? e.what() : unknown) << "\n";
    return exit_usage;
  } catch (const usage_error& e) {
    std::cerr << "shoal: " << e.text << "\n";
    return exit_usage;
  } catch (const toml_error& e) {
    std::cerr << "shoal: " << e.text << "\n";
    return exit_usage;
  } catch (const std::exception& e) {
    const auto* s = dynamic_cast<const std::system_error*>(&e);
    std::cerr << "shoal: " << e.what()
              << (s && s->code() == std::errc::resource_unavailable_try_again
                    ? ": the system allows no more threads; raise the limit on "
                      "this user's processes (ulimit -u)"
                    : "")
              << "\n";
    return exit_failed;
  }
}

} // namespace

int run_cli(int argc, char** argv) {
  const shown_stream errors(std::cerr);
  const int code = parse_and_run(argc, argv);
  const std::string why = unwritten_output();
  if (why.empty())
    return code;
  std::cerr << "shoal: cannot write to stdout: " << why << "\n";
  return code == exit_done ? exit_failed : code;
}

} // namespace shoal::apps
