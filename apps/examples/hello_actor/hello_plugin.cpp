// apps/examples/hello_actor/hello_plugin.cpp -- hello.hpp as a plug-in:
// shoal node --plugin build/apps/examples/libhello.so
#include "hello.hpp"

SHOAL_PLUGIN("hello", hello_actor::add)
