// apps/shoal.cpp -- the program: hands the command line to its parser.
#include "apps/commands.hpp"

int main(int argc, char** argv) {
  return shoal::apps::run_cli(argc, argv);
}
