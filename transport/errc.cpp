// transport/errc.cpp -- names of the transport's errors.
#include "transport/errc.hpp"

#include <string>

namespace shoal::transport {
namespace {

class category final : public std::error_category {
public:
  const char* name() const noexcept override { return "transport"; }
  std::string message(int code) const override {
    switch (static_cast<errc>(code)) {
    case errc::ok:
      return "ok";
    case errc::would_block:
      return "queue full";
    case errc::peer_lost:
      return "peer lost";
    case errc::not_posted:
      return "no receive posted";
    case errc::size_mismatch:
      return "size differs from the posted receive";
    case errc::corrupt:
      return "checksum mismatch";
    case errc::canceled:
      return "canceled";
    case errc::refused:
      return "refused: wrong cluster key or protocol";
    case errc::too_large:
      return "message too large";
    case errc::unreachable:
      return "unreachable";
    case errc::no_answer:
      return "no answer";
    case errc::self:
      return "the address is this node's own";
    }
    return "unknown transport error";
  }
};

} // namespace

const std::error_category& transport_category() noexcept {
  static const category instance;
  return instance;
}

} // namespace shoal::transport
