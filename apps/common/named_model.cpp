// apps/common/named_model.cpp -- paths first, then names.
#include "apps/common/named_model.hpp"

#include "apps/terminal/slow_work.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/hub/pull.hpp"

#include <cstdlib>
#include <iostream>
#include <system_error>

namespace shoal::apps {

namespace fs = std::filesystem;

static bool is_here(const fs::path& model) {
  std::error_code error;
  return fs::symlink_status(model, error).type() != fs::file_type::not_found;
}

std::string hub_repository(const fs::path& model) {
  const auto name = hub::parse_name(model.string());
  return name && !is_here(model) ? name->repository : std::string();
}

model::result<fs::path>
local_model(const fs::path& model, const download_terms& terms) {
  if (model.empty() || is_here(model))
    return model;
  const auto name = hub::parse_name(model.string());
  if (!name)
    return model::failure{"there is no file or folder "
                          + core::shown(model.string())};
  const auto settings = hub::read_settings(std::getenv);
  if (!settings)
    return settings.why();
  const auto found = hub::pull(*settings, {*name, false, terms.weights},
                               terms.told ? terms.told : shown_work([&terms] {
                                 return !terms.goes_on || terms.goes_on();
                               }));
  if (!found)
    return model::failure{"there is no file or folder "
                          + core::shown(model.string())
                          + " here; on the hub: " + found.message()};
  if (!found->notice.empty())
    std::cerr << "shoal: " << found->notice << "; the cache has the model\n";
  std::cerr << "shoal: " << model.string() << " is commit "
            << found->commit.substr(0, 12)
            << (found->fetched_bytes > 0
                  ? ", downloaded (" + core::size_text(found->fetched_bytes)
                      + ")"
                  : "")
            << ": " << found->path.string() << "\n";
  return found->path;
}

} // namespace shoal::apps
