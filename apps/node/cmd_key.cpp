// apps/node/cmd_key.cpp -- key, invite, revoke: admission to the shoal.
#include "apps/common/commands.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_json.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/terminal/confirm.hpp"
#include "runtime/control/client.hpp"
#include "runtime/control/invite.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/file.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/wire/client_messages.hpp" // invite_seconds_max

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <span>

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
  } catch (const runtime::setup_error& e) {
    std::cerr << "shoal: " << e.what() << "\n";
    return exit_failed;
  }
  return exit_done;
}

namespace {

/// "30m" -> 1800; 0 for text that is no time, or too long a time.
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

/// The last second of a date with four digits: the node chooses the time that
/// is printed here.
constexpr std::int64_t year_9999_s = 253402300799;

int fail_by(const runtime::client& c) {
  std::cerr << "shoal: " << c.text() << "\n";
  return exit_failed;
}

/// Why the token may not be written to `o.out`; "" if it may.
std::string not_to(const invite_options& o) {
  std::error_code error;
  const auto is = std::filesystem::symlink_status(o.out, error);
  if (is.type() == std::filesystem::file_type::not_found)
    return {};
  const std::string file = o.out.string();
  if (is.type() == std::filesystem::file_type::symlink)
    return file + " is a symbolic link: name the file itself";
  if (is.type() != std::filesystem::file_type::regular)
    return file + " is no file that a token can be written to";
  return o.overwrite ? ""
                     : file
                         + " exists and is left as it is: name another file, "
                           "or add --overwrite";
}

/// A warning if stdout is a file that other users can read (made by the shell,
/// with the umask); otherwise "".
std::string exposed_stdout() {
  struct stat is {};
  if (::fstat(STDOUT_FILENO, &is) != 0 || !S_ISREG(is.st_mode)
      || (is.st_mode & 077) == 0)
    return {};
  std::error_code error;
  const auto file = std::filesystem::read_symlink("/proc/self/fd/1", error);
  const std::string name = error ? "FILE" : shell_word(file.string());
  return "other users of this machine may read the token, which is a secret, "
         "in the file that it was written to: run `chmod 600 "
         + core::shown(name)
         + "`, and next time `shoal invite --out FILE`, which makes a file "
           "that only you can read";
}

/// Writes the token to stdout or to a file that only its owner can read.
/// @returns why not, or ""
std::string give(const invite_options& o, const std::string& token) {
  if (o.out.empty()) {
    std::cout << token << std::endl;
    return std::cout ? "" : "cannot write the token";
  }
  if (std::string why = not_to(o); !why.empty())
    return why; // it has been created meanwhile
  const std::string line = token + "\n";
  const auto bytes = std::as_bytes(std::span(line));
  const auto file = std::filesystem::absolute(o.out);
  const auto error = o.overwrite ? runtime::replace_file(file, bytes)
                                 : runtime::write_new_file(file, bytes);
  return error ? "cannot write " + o.out.string() + ": " + error.message() : "";
}

} // namespace

int run_invite(const invite_options& o) {
  const std::uint32_t seconds = parse_seconds(o.expires);
  if (seconds == 0) {
    std::cerr << "shoal: --expires is '" << o.expires
              << "'; expected 90s, 30m, 12h or up to 31d\n";
    return exit_usage;
  }
  if (std::string why = o.out.empty() ? "" : not_to(o); !why.empty()) {
    std::cerr << "shoal: --out: " << why << "\n";
    return exit_failed;
  }
  runtime::client client(client_of(o.at));
  std::string token;
  if (client.connect())
    return fail_by(client);
  say_no_quorum(client);
  if (client.invite(seconds, token))
    return fail_by(client);
  const auto parsed = runtime::parse_token(token);
  if (!parsed) {
    std::cerr << "shoal: the node gave no token\n";
    return exit_failed;
  }
  if (const std::string why = give(o, token); !why.empty()) {
    std::cerr << "shoal: --out: " << why << "\n";
    return exit_failed;
  }
  std::cerr << "for one peer, until "
            << core::utc_text(
                 1000
                 * std::clamp<std::int64_t>(parsed->expires_s, 0, year_9999_s))
            << ", from " << core::to_hex(parsed->inviter)
            << (o.out.empty()
                  ? "\nthere: shoal node --join-token-file -, and paste it (or "
                    "name a file that holds it; `shoal invite --out FILE` "
                    "writes one that only you can read)\n"
                  : "\nthe token is in " + core::shown(o.out.string())
                      + ", which only you can read: copy it there (scp -p), "
                        "and run shoal node --join-token-file FILE\n");
  if (const std::string why = exposed_stdout(); o.out.empty() && !why.empty())
    std::cerr << "shoal: " << why << "\n";
  if (runtime::is_local(*parsed))
    std::cerr << "shoal: this token works on this machine only: its node "
                 "listens at "
              << core::shown(parsed->addresses.front())
              << ". For other machines start the node with --cluster-key FILE "
                 "(see `shoal key new`)\n";
  return exit_done;
}

namespace {

/// The effects of `revoke`.
irrevocable revocation(const std::string& found, const revoke_options& o) {
  return {"revoke",
          "This shuts peer " + found
            + " out of the shoal for good: it ends, and only a new invite and "
              "an empty data directory bring that machine back. The cluster "
              "key is replaced: copies of its file admit no new peer, nor do "
              "invites that nobody has used.",
          "shoal revoke " + shell_word(o.peer) + " --yes" + options_text(o.at)};
}

} // namespace

int run_revoke(const revoke_options& o) {
  if (auto why = needs_a_name(o.at, "revoke PEER"); !why.empty()) {
    std::cerr << "shoal: " << why << "\n";
    return exit_usage;
  }
  runtime::client client(client_of(o.at));
  std::string found;
  if (client.connect() || client.find_to_revoke(o.peer, found))
    return fail_by(client);
  if (!o.yes)
    if (const int answer = confirm(revocation(found, o)); answer != exit_done)
      return answer;
  // A key that waits to be replaced would lock out nobody, and help nobody.
  std::string now;
  if (client.status(now))
    return fail_by(client);
  if (const auto status = parse_status(now))
    if (const std::string why = no_quorum_text(*status); !why.empty()) {
      std::cerr << "shoal: " << why << ". Nobody was revoked\n";
      return exit_failed;
    }
  std::string id;
  if (client.revoke(o.peer, id))
    return fail_by(client);
  const auto line = id.find('\n'); // what follows is more to know
  std::cout << "revoked " << id.substr(0, line)
            << "; the cluster key was replaced. Each node has stored the new "
               "one in its data directory and says where; copies of the old "
               "file admit no new peer"
            << (line == std::string::npos ? "" : id.substr(line)) << "\n";
  return exit_done;
}

} // namespace shoal::apps
