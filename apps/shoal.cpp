// apps/shoal.cpp -- the program: hands the command line to its parser.
#include "apps/commands.hpp"
#include "runtime/uncaught.hpp"

int main(int argc, char** argv) {
  shoal::runtime::report_uncaught();
  return shoal::apps::run_cli(argc, argv);
}
