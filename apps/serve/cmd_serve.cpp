// apps/serve/cmd_serve.cpp -- serve: uploads a model, submits the job that serves
// it, shows its requests.
//
// Without a local node one is started in this process: the same view, plan and
// actors, in a temporary directory.
#include "apps/common/commands.hpp"
#include "apps/remote/embedded_node.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/terminal/line_printer.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/slow_work.hpp"
#include "apps/train/job_name.hpp"
#include "apps/train/model_folder.hpp"
#include "apps/train/run_file.hpp" // user_at_host
#include "apps/transfer/model_upload.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/jobs/serve_config.hpp"
#include "runtime/model/decode/paged_cache.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/model/unit_state.hpp" // stored_name
#include "runtime/model/units.hpp"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

namespace shoal::apps {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
using model::failure;
using runtime::job_event;
using runtime::job_event_kind;

namespace {

/// Time for requests that are being answered when the command ends.
constexpr std::chrono::seconds drain_max{30};

/// Bytes of a value of the blocks' matrices, as they are stored.
model::result<std::uint64_t>
stored_bytes(const fs::path& folder, const model::model_config& config) {
  auto files = model::safetensors_source::open(folder);
  if (!files)
    return files.why();
  const model::unit_layout layout(config);
  for (const model::tensor_info& t : layout.tensors_of(1))
    if (t.shape.size() == 2)
      if (const model::stored_tensor* at =
            files->find(model::stored_name(t, *files)))
        return std::uint64_t(at->type == model::stored_type::bf16 ? 2 : 4);
  return std::uint64_t{4};
}

class serving final : private runtime::follow_handler {
public:
  explicit serving(const serve_options& o) : o_(o) {}

  int run() {
    auto folder = model_in(o_.model);
    if (!folder)
      return fail(folder.message());
    auto config = describe(*folder);
    if (!config)
      return fail(config.message());
    if (auto whole = check_model(*folder, watch_work()); !whole)
      return fail(whole.message());
    try {
      if (auto connected = connect(); !connected)
        return fail(connected.message());
    } catch (const runtime::usage_error& e) {
      return fail(e.what(), exit_usage);
    } catch (const std::exception& e) {
      return fail(e.what());
    }
    if (auto sent = submit(*folder, *config); !sent)
      return fail(sent.message());
    return follow();
  }

private:
  int fail(const std::string& text, int code = exit_failed) {
    std::cerr << "shoal: " << text << "\n";
    return code;
  }

  void say(const char* event, const std::string& text) {
    out_.line(o_.json ? model::json_text(json{{"event", event}, {"text", text}})
                      : core::shown(text));
  }

  model::watch watch_work() {
    return shown_work([this] { return !interrupts_.seen(); });
  }

  model::result<runtime::serve_config> describe(const fs::path& folder) {
    auto config = model::load_config(folder);
    if (!config)
      return config.why();
    runtime::serve_config c;
    c.model = *config;
    auto bytes = stored_bytes(folder, *config);
    if (!bytes)
      return bytes.why();
    c.stored_bytes = *bytes;
    for (const auto type : {kernels::weight_type::bf16,
                            kernels::weight_type::q8, kernels::weight_type::q4})
      if (o_.quantize == kernels::name_of(type))
        c.quantize = type;
    const std::uint64_t positions = std::min<std::uint64_t>(
      config->max_position_embeddings, core::serving::tokens_max);
    c.context = o_.context == 0 ? positions : o_.context;
    if (c.context > positions)
      return failure{"--context: is " + std::to_string(c.context)
                     + ", the model has " + std::to_string(positions)
                     + " positions"};
    c.cache_tokens = o_.cache_tokens == 0
                       ? runtime::usual_cache_tokens(c.context)
                       : o_.cache_tokens;
    if (c.cache_tokens < c.context)
      return failure{"--cache-tokens: is " + std::to_string(c.cache_tokens)
                     + ", must be at least the context, "
                     + std::to_string(c.context)};
    c.speculate = o_.speculate.value_or(runtime::speculate_usual);
    const bool floats = c.quantize ? false : c.stored_bytes == 4;
    c.kv = o_.kv_type.empty()
             ? (floats ? kernels::kv_type::f32 : kernels::kv_type::bf16)
             : *model::kv_type_named(o_.kv_type);
    return c;
  }

  model::status connect() {
    runtime::client_config c = client_of(o_.at);
    client_ = std::make_unique<runtime::client>(c);
    if (!client_->connect()) {
      say("notice", "using the node at " + client_->where());
      return model::done{};
    }
    if (names_a_node(o_.at))
      return failure{client_->text()};
    if (o_.detach)
      return failure{"--detach needs a running node: start `shoal node`"};
    say("notice", "no node runs here: serving from this process");
    const auto lines = [this](const std::string& text) { say("notice", text); };
    http_ = std::make_unique<http_front>(o_.http, lines);
    runtime::role_table roles;
    http_->open(roles);
    embedded_ = std::make_unique<embedded_node>(
      embedded_config{
        "serve", o_.join, o_.at.cluster_key, o_.threads, {}, http_->endpoint()},
      lines, roles);
    c.data_dir = embedded_->folder();
    client_ = std::make_unique<runtime::client>(c);
    if (client_->connect())
      return failure{client_->text()};
    return model::done{};
  }

  model::status
  submit(const fs::path& folder, const runtime::serve_config& config) {
    std::string text;
    if (client_->status(text))
      return failure{client_->text()};
    std::set<std::string> running;
    if (const auto status = parse_status(text)) {
      if (const std::string why = no_quorum_text(*status); !why.empty())
        say("notice", why + ". Waiting for a quorum");
      if (status->contains("http"))
        endpoint_ = (*status)["http"].get<std::string>();
      for (const auto& job : (*status)["jobs"])
        if (job["state"] == "running")
          running.insert(job["name"].get<std::string>());
    }
    std::string name = o_.name;
    if (name.empty()) {
      std::error_code error;
      const fs::path whole = fs::canonical(o_.model, error);
      name = whole.filename().string();
    }
    name_ = core::shown(name, core::limits::name_bytes_max);
    if (running.contains(name_))
      return failure{"a job named \"" + name_
                     + "\" is running: choose another name by --as, or end it "
                       "by `"
                     + command_line("cancel " + name_, o_.at) + "`"};
    core::job_entry entry = runtime::serve_entry(config, name_, o_.pipelines);
    entry.user = user_at_host();
    entry.want_stages = o_.stages;
    const put_pieces put =
      [this](std::span<const std::span<const std::byte>> pieces,
             core::blob_digest& digest) -> model::status {
      if (client_->put_pieces(pieces, digest))
        return failure{client_->text()};
      return model::done{};
    };
    auto sent = upload_model(folder, 0, put);
    if (!sent)
      return sent.why();
    entry.origin = sent->manifest;
    entry.origin_bytes = sent->bytes;
    if (client_->submit(entry, job_))
      return failure{client_->text()};
    return model::done{};
  }

  int follow() {
    const auto error = client_->follow(job_, *this);
    if (error && state_.empty()) {
      if (detached_)
        return exit_done;
      if (interrupts_.seen())
        return exit_interrupted;
      return fail(client_->text());
    }
    if (state_ == "failed")
      return fail("the job failed: " + cause_);
    return interrupts_.seen() ? exit_interrupted : exit_done;
  }

  // follow_handler --------------------------------------------------------------
  bool on(const job_event& e) override {
    switch (e.kind) {
    case job_event_kind::done:
      state_ = e.text;
      cause_ = e.cause;
      return false;
    case job_event_kind::notice:
      say("notice", e.text);
      break;
    case job_event_kind::view:
      say("view", e.text);
      break;
    default:
      break;
    }
    if (e.kind == job_event_kind::notice && !ready_
        && e.text.starts_with("ready")) {
      ready_ = true;
      const std::string end =
        o_.detach ? "; `" + command_line("cancel " + name_, o_.at) + "` ends it"
                  : " (Ctrl-C: end)";
      say("ready",
          "\"" + name_ + "\" is served at http://" + endpoint_ + "/v1" + end);
      if (o_.detach) {
        detached_ = true;
        return false;
      }
    }
    return true;
  }
  bool stops() override {
    if (detached_)
      return true;
    if (!interrupts_.seen() || stopping_)
      return false;
    stopping_ = true;
    say("notice", "ending: requests that are being answered go on for "
                    + std::to_string(drain_max.count()) + " s at most");
    if (http_)
      http_->drain(drain_max);
    if (client_->stop_job(job_, true))
      return true; // no node answers any more
    return false;
  }
  void moved() override {}

  const serve_options& o_;
  line_printer out_{STDOUT_FILENO, [](std::size_t count) {
                      return std::to_string(count)
                             + " lines left out: nobody read them";
                    }};
  signals interrupts_;
  std::unique_ptr<http_front> http_;
  std::unique_ptr<embedded_node> embedded_;
  std::unique_ptr<runtime::client> client_;
  core::job_id job_ = 0;
  std::string name_, endpoint_;
  std::string state_, cause_;
  bool ready_ = false, detached_ = false, stopping_ = false;
};

} // namespace

int run_serve(const serve_options& o) {
  serving s(o);
  return s.run();
}

} // namespace shoal::apps
