// apps/manage/job_guard.cpp -- asks twice.
#include "apps/manage/job_guard.hpp"

namespace shoal::apps {

std::string job_guard::stop() {
  const core::job_id job = std::exchange(job_, 0);
  if (job == 0)
    return {};
  const auto is_over = [&] { // as well if it is on no list any more
    const auto error = client_.stop_job(job, false);
    return !error || error == runtime::errc::not_found;
  };
  if (is_over() || (!client_.connect() && is_over()))
    return {};
  const std::string text = core::job_text(job);
  return "job " + text + " may still run, since the request to end it failed ("
         + client_.text() + "): `shoal cancel " + text + "` ends it";
}

} // namespace shoal::apps
