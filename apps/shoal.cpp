// apps/shoal.cpp -- the program: hands the command line to its parser.
#include "apps/common/commands.hpp"
#include "runtime/host/hangup.hpp"
#include "runtime/work/uncaught.hpp"

int main(int argc, char** argv) {
  shoal::runtime::report_uncaught();
  shoal::runtime::restore_hangup();
  return shoal::apps::run_cli(argc, argv);
}
