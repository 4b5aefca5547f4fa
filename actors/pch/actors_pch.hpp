// actors/pch/actors_pch.hpp -- precompiled for this folder: CAF is most of
// the time that an actor takes to compile. Never included by name.
#include <caf/all.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
