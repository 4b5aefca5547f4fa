// runtime/plugin.cpp -- opens and checks a plug-in and gets its roles.
#include "runtime/plugin.hpp"

#include "runtime/core/setup_error.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shoal::runtime {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw setup_error("--plugin " + file.string() + ": " + why);
}

/// Refuses a library that another user could have written.
void check_owner(const fs::path& given, const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0)
    refuse(given, "cannot be read: " + std::string(std::strerror(errno)));
  if (!S_ISREG(info.st_mode))
    refuse(given, "is no file; name the shared library itself");
  if (info.st_uid != ::getuid() && info.st_uid != 0)
    refuse(given, "belongs to another user; copy it, if you trust it");
  if (info.st_mode & S_IWOTH)
    refuse(given, "can be written by everybody; chmod o-w, if you trust it");
}

std::string numbers(const plugin_info& p) {
  return "CAF " + std::to_string(p.caf) + ", compiler ABI "
         + std::to_string(p.compiler) + ", layout "
         + std::to_string(p.layout % 1000000);
}

/// Names of the roles in `added` that `roles` has already.
std::string taken(const role_table& roles, const role_table& added) {
  for (const auto& [name, make] : added)
    if (roles.find(name) != roles.end())
      return name;
  for (const auto& [name, make] : added.placed)
    if (roles.placed.contains(name))
      return name;
  return {};
}

void check_names(const fs::path& file, const role_table& added) {
  auto check = [&](const std::string& name, bool callable) {
    if (name.empty() || name.size() > role_name_max
        || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-")
             != std::string::npos)
      refuse(file,
             "its role '" + name + "' is not 1 to 32 of a-z, 0-9, _ and -");
    if (!callable)
      refuse(file, "its role '" + name + "' has no factory");
  };
  for (const auto& [name, make] : added)
    check(name, bool(make));
  for (const auto& [name, make] : added.placed)
    check(name, bool(make));
}

} // namespace

std::string load_plugin(const fs::path& file, role_table& roles) {
  std::error_code error;
  // Absolute: dlopen would search for a bare name elsewhere.
  const fs::path real = fs::canonical(file, error);
  if (error)
    refuse(file, error.message() + "; give the path of a shared library");
  check_owner(file, real);
  void* library = ::dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    refuse(file, std::string("cannot be loaded: ") + ::dlerror());
  using entry_point = const plugin_info* (*)();
  auto entry = reinterpret_cast<entry_point>(::dlsym(library, plugin_symbol));
  const plugin_info* info = entry ? entry() : nullptr;
  if (!info)
    refuse(file, std::string("has no entry point '") + plugin_symbol
                   + "': it is no shoal plug-in (end it with SHOAL_PLUGIN)");
  if (info->abi != plugin_abi)
    refuse(file, "is made for plug-in ABI " + std::to_string(info->abi)
                   + ", this program has " + std::to_string(plugin_abi)
                   + "; compile it against this program's headers");
  const plugin_info own;
  if (info->caf != own.caf || info->compiler != own.compiler
      || info->layout != own.layout)
    refuse(file, "was compiled against other headers (" + numbers(*info)
                   + "; this program: " + numbers(own) + "); compile it again");
  if (!info->add || !info->name)
    refuse(file, "has no function to add its roles");
  role_table added;
  try {
    info->add(added);
  } catch (const std::exception& e) {
    refuse(file, std::string("failed to add its roles: ") + e.what());
  }
  check_names(file, added);
  if (std::string name = taken(roles, added); !name.empty())
    refuse(file, "its role '" + name + "' is there already");
  roles.insert(added.begin(), added.end());
  roles.placed.insert(added.placed.begin(), added.placed.end());
  return info->name;
}

} // namespace shoal::runtime
