// apps/transfer/checkpoint_offer.cpp -- uploads files, then informs the job.
#include "apps/transfer/checkpoint_offer.hpp"

#include "apps/transfer/model_upload.hpp"

#include <utility>

namespace shoal::apps {
namespace {

std::string send(runtime::client_config at, core::job_id job,
                 const std::filesystem::path& folder, std::uint64_t step,
                 const std::atomic<bool>& stop) {
  at.say = {}; // only the command's other connection prints messages
  const std::string what =
    "the checkpoint of step " + std::to_string(step) + " in " + folder.string();
  const std::string no = what + " cannot be offered to the job: ";
  if (auto whole = check_model(folder, [&stop](auto&&...) { return !stop; });
      !whole)
    return no + whole.message();
  runtime::client client(std::move(at));
  if (client.connect())
    return no + client.text();
  const auto sent =
    upload_model(folder, step,
                 [&](std::span<const model::file_piece> pieces,
                     core::blob_digest& digest) -> model::status {
                   if (stop)
                     return model::failure{"the command ends"};
                   if (client.put_pieces(pieces, digest))
                     return model::failure{client.text()};
                   return model::done{};
                 });
  if (!sent)
    return no + sent.message();
  if (client.offer_checkpoint(job, sent->manifest, step))
    return what + " is not taken by the job: " + client.text();
  return what + " is offered to the job";
}

} // namespace

checkpoint_offer::~checkpoint_offer() {
  stop_ = true;
  if (thread_.joinable())
    thread_.join();
}

void checkpoint_offer::begin(const runtime::client_config& at, core::job_id job,
                             const std::filesystem::path& folder,
                             std::uint64_t step) {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(under_way_, true))
      return;
  }
  if (thread_.joinable())
    thread_.join();
  thread_ = std::thread([this, at, job, folder, step] {
    std::string line = send(at, job, folder, step, stop_);
    std::lock_guard lock(mutex_);
    outcome_ = std::move(line);
    under_way_ = false;
  });
}

std::optional<std::string> checkpoint_offer::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

} // namespace shoal::apps
