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

void say_sources(const std::string& sources) {
  if (!sources.empty())
    std::cerr << "shoal: not all options were on the command line: " << sources
              << "\n";
}

int run_chosen(CLI::App& app, const runners& run, const configuration& file,
               const std::string& sources) {
  if (auto wrong = mistyped_variable(app); !wrong.empty())
    throw usage_error{wrong};
  if (auto wrong = unknown_key(app, file); !wrong.empty())
    throw usage_error{wrong};
  for (CLI::App* command : app.get_subcommands()) {
    if (auto wrong = empty_word(*command); !wrong.empty()) {
      say_sources(sources);
      throw usage_error{wrong};
    }
    const int code = run.at(command)();
    // The command knows options only, wherever their values came from.
    if (code == exit_usage)
      say_sources(sources);
    return code;
  }
  return exit_usage;
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
  CLI::App app{"shoal -- equal peers that train and serve language models "
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
  filled_line line{{argv + 1, argv + argc}, {}};
  try {
    const configuration file = read_configuration(line.words);
    line = fill_in(app, std::move(line.words), file);
    app.parse(std::vector<std::string>(line.words.rbegin(), // as it wants them
                                       line.words.rend()));
    return run_chosen(app, run, file, line.sources);
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
    if (const int code = e.get_exit_code();
        code == int(CLI::ExitCodes::ExcludesError)
        || code == int(CLI::ExitCodes::RequiresError))
      say_sources(line.sources);
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
