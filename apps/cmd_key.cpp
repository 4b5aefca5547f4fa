// apps/cmd_key.cpp -- key, invite, revoke: who may be in the shoal.
#include "apps/commands.hpp"
#include "apps/remote.hpp"
#include "runtime/client.hpp"
#include "runtime/core/shown.hpp"
#include "runtime/identity.hpp"
#include "runtime/invite.hpp"
#include "runtime/node.hpp"          // node_error
#include "runtime/wire/messages.hpp" // invite_seconds_max

#include <ctime>
#include <iostream>

namespace shoal::apps {

int run_key(const key_options& o) {
  try {
    const std::filesystem::path file = !o.file.empty() ? o.file
                                       : o.action == "new"
                                         ? std::filesystem::path("cluster.key")
                                         : runtime::user_key_file();
    const auto key = o.action == "new" ? runtime::new_cluster_key(file)
                                       : runtime::load_cluster_key(file);
    std::cout << runtime::key_fingerprint(key) << "  " << file.string() << "\n";
  } catch (const runtime::node_error& e) {
    std::cerr << "shoal: " << e.what() << "\n";
    return exit_failed;
  }
  return exit_done;
}

namespace {

/// "30m" -> 1800; 0 for what is no time or too long.
std::uint32_t parse_seconds(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits > 7 || digits + 1 != text.size())
    return 0;
  const std::uint64_t count = std::stoull(text);
  const std::uint64_t unit = text.back() == 's'   ? 1
                             : text.back() == 'm' ? 60
                             : text.back() == 'h' ? 3600
                             : text.back() == 'd' ? 86400
                                                  : 0;
  const std::uint64_t seconds = count * unit;
  return seconds <= runtime::invite_seconds_max ? std::uint32_t(seconds) : 0;
}

int fail(const runtime::client& c) {
  std::cerr << "shoal: " << c.text() << "\n";
  return exit_failed;
}

} // namespace

int run_invite(const invite_options& o) {
  const std::uint32_t seconds = parse_seconds(o.expires);
  if (seconds == 0) {
    std::cerr << "shoal: --expires is '" << o.expires
              << "'; expected 90s, 30m, 12h or up to 31d\n";
    return exit_usage;
  }
  runtime::client client(client_of(o.at));
  std::string token;
  if (client.connect() || client.invite(seconds, token))
    return fail(client);
  const auto parsed = runtime::parse_token(token);
  if (!parsed) {
    std::cerr << "shoal: the node gave no token\n";
    return exit_failed;
  }
  const std::time_t until = parsed->expires_s;
  char when[64] = {};
  std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC",
                std::gmtime(&until));
  std::cout << token << std::endl;
  std::cerr << "for one peer, until " << when << ", from "
            << core::to_hex(parsed->inviter)
            << "\nthere: shoal node --join-token-file -, and paste it (or "
               "name a file that holds it)\n";
  if (runtime::is_local(*parsed))
    std::cerr << "shoal: this token works on this machine only: its node "
                 "listens at "
              << core::shown(parsed->addresses.front())
              << ". For other machines start the node with --cluster-key FILE "
                 "(see `shoal key new`)\n";
  return exit_done;
}

int run_revoke(const revoke_options& o) {
  if (auto why = needs_a_name(o.at, "revoke PEER"); !why.empty()) {
    std::cerr << "shoal: " << why << "\n";
    return exit_usage;
  }
  runtime::client client(client_of(o.at));
  std::string id;
  if (client.connect() || client.revoke(o.peer, id))
    return fail(client);
  std::cout << "revoked " << id
            << "; the cluster key was replaced. Each node has stored the new "
               "one in its data directory and says where; copies of the old "
               "file no longer work\n";
  return exit_done;
}

} // namespace shoal::apps
