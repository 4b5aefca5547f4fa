// apps/chaos/chaos_job.cpp -- a client on a thread.
#include "apps/chaos/chaos_job.hpp"

#include <sys/eventfd.h>

#include <chrono>
#include <stdexcept>

namespace shoal::apps {

namespace {

/// A stopped node takes connections and never answers.
constexpr std::chrono::seconds request_timeout{3};
/// For one node among all to answer.
constexpr std::chrono::seconds patience{60};

runtime::client client_at(const std::filesystem::path& data_dir) {
  runtime::client_config c;
  c.data_dir = data_dir;
  c.timeout = request_timeout;
  return runtime::client(c);
}

} // namespace

chaos_job::chaos_job(const std::filesystem::path& data_dir,
                     core::job_entry entry, const std::vector<std::byte>& text)
  : data_dir_(data_dir), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  runtime::client client = client_at(data_dir_);
  entry.data_bytes = text.size();
  if (client.connect() || client.put_blob(text, entry.data)
      || client.submit(entry, job_))
    throw std::runtime_error(client.text());
  thread_ = std::thread([this] { follow(); });
}

chaos_job::~chaos_job() {
  stop_ = true;
  thread_.join();
}

bool chaos_job::on(const runtime::job_event& event) {
  {
    std::lock_guard lock(mutex_);
    events_.push_back(event);
  }
  ring();
  return !stop_;
}

void chaos_job::follow() {
  runtime::client client = client_at(data_dir_);
  std::error_code error = client.connect();
  if (!error)
    error = client.follow(job_, *this, {}, patience);
  if (!error)
    return;
  {
    std::lock_guard lock(mutex_);
    wrong_ = client.text();
  }
  ring();
}

void chaos_job::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(bell_.get(), &one, sizeof one);
}

std::vector<runtime::job_event> chaos_job::take() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto n = ::read(bell_.get(), &count, sizeof count);
  std::lock_guard lock(mutex_);
  if (!wrong_.empty())
    throw std::runtime_error("the run cannot be followed: " + wrong_);
  return std::exchange(events_, {});
}

std::vector<runtime::job_event>
chaos_job::known_at(const std::filesystem::path& data_dir) const {
  runtime::client client = client_at(data_dir);
  std::vector<runtime::job_event> all, some;
  std::uint64_t next = 0;
  if (client.connect())
    return all;
  do {
    some.clear();
    if (client.events(job_, next, some))
      break;
    all.insert(all.end(), some.begin(), some.end());
  } while (!some.empty());
  return all;
}

void chaos_job::cancel() {
  runtime::client client = client_at(data_dir_);
  if (client.connect() || client.stop_job(job_, false))
    throw std::runtime_error(client.text());
}

} // namespace shoal::apps
