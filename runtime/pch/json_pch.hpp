// runtime/pch/json_pch.hpp -- precompiled for the libraries that read and write JSON:
// most of the time that such a file takes to compile.
#include "std_pch.hpp"

#include <nlohmann/json.hpp>
