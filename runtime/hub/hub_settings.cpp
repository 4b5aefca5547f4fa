// runtime/hub/hub_settings.cpp -- variables with their defaults.
#include "runtime/hub/hub_settings.hpp"

#include "runtime/files/file_io.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace shoal::hub {
namespace {

namespace fs = std::filesystem;
using model::failure;

class variables {
public:
  explicit variables(const environment& get) : get_(get) {}

  /// Empty: not set, or set to nothing.
  std::string operator[](const char* name) const {
    const char* value = get_(name);
    return value != nullptr ? value : "";
  }
  bool is_true(const char* name) const {
    std::string value = (*this)[name];
    std::ranges::transform(value, value.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    });
    return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
  }
  /// A path, in which "~" may begin.
  fs::path path(const char* name, const fs::path& usual) const {
    const std::string value = (*this)[name];
    if (value == "~" || value.starts_with("~/"))
      return (*this)["HOME"] + value.substr(1);
    return value.empty() ? usual : fs::path(value);
  }

private:
  const environment& get_;
};

/// "http" or "https", a host, perhaps a port and a path.
bool is_endpoint(std::string_view url) {
  const std::string_view rest = url.starts_with("https://")  ? url.substr(8)
                                : url.starts_with("http://") ? url.substr(7)
                                                             : "";
  // A name and a password in it would come to be shown.
  return !rest.empty() && rest.front() != '/' && rest.size() <= 1024
         && std::ranges::all_of(rest, [](char c) {
              return c > ' ' && c < 0x7f
                     && std::string_view("@?#\\\"<>").find(c)
                          == std::string_view::npos;
            });
}

std::string without_ends(std::string text) {
  const auto is_space = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  };
  while (!text.empty() && is_space(text.back()))
    text.pop_back();
  text.erase(text.begin(), std::ranges::find_if_not(text, is_space));
  return text;
}

/// The token, and where it is from.
model::result<std::string> token_of(const variables& v, const fs::path& home) {
  std::string source = "HF_TOKEN";
  std::string token = without_ends(v["HF_TOKEN"]);
  if (token.empty()) {
    source = "HUGGING_FACE_HUB_TOKEN"; // its former name
    token = without_ends(v["HUGGING_FACE_HUB_TOKEN"]);
  }
  if (token.empty()) {
    const fs::path file = v.path("HF_TOKEN_PATH", home / "token");
    std::error_code error;
    if (!fs::exists(file, error))
      return std::string();
    const auto text = model::read_file(file, token_bytes_max);
    if (!text)
      return failure{"the hub's token: " + text.message()};
    source = file.string();
    token = without_ends(*text);
  }
  // It becomes a line of a request.
  if (token.size() > token_bytes_max || !std::ranges::all_of(token, [](char c) {
        return c > ' ' && c < 0x7f;
      }))
    return failure{source
                   + ": is no token of the hub: a token is one word of letters "
                     "and digits, such as hf_..."};
  return token;
}

} // namespace

model::result<hub_settings> read_settings(const environment& get) {
  const variables v(get);
  hub_settings out;
  out.endpoint = v["HF_ENDPOINT"];
  if (out.endpoint.empty())
    out.endpoint = "https://huggingface.co";
  while (out.endpoint.ends_with('/'))
    out.endpoint.pop_back();
  if (!is_endpoint(out.endpoint))
    return failure{"HF_ENDPOINT must be a URL such as https://huggingface.co, "
                   "without user and password"};
  const fs::path caches =
    v.path("XDG_CACHE_HOME", v.path("HOME", "") / ".cache");
  const fs::path home = v.path("HF_HOME", caches / "huggingface");
  out.cache =
    v.path("HF_HUB_CACHE", v.path("HUGGINGFACE_HUB_CACHE", home / "hub"));
  if (out.cache.is_relative() && v["HOME"].empty() && v["HF_HUB_CACHE"].empty()
      && v["HUGGINGFACE_HUB_CACHE"].empty() && v["HF_HOME"].empty()
      && v["XDG_CACHE_HOME"].empty())
    return failure{"no folder for models: set HF_HOME, as HOME is not set"};
  out.offline =
    v.is_true("HF_HUB_OFFLINE") || v.is_true("TRANSFORMERS_OFFLINE");
  if (const std::string text = v["HF_HUB_DOWNLOAD_TIMEOUT"]; !text.empty()) {
    int seconds = 0;
    const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || seconds < 1
        || seconds > silence_max.count())
      return failure{"HF_HUB_DOWNLOAD_TIMEOUT must be a number of seconds from "
                     "1 to "
                     + std::to_string(silence_max.count())};
    out.silence = std::chrono::seconds(seconds);
  }
  out.certificates = v["SSL_CERT_FILE"];
  if (out.certificates.empty())
    out.certificates = v["CURL_CA_BUNDLE"];
  if (out.offline || v.is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN"))
    return out;
  auto token = token_of(v, home);
  if (!token)
    return token.why();
  out.token = *std::move(token);
  return out;
}

} // namespace shoal::hub
