// runtime/http/client/tls_stream.cpp -- OpenSSL between two buffers: it never
// touches the socket, which is written without SIGPIPE.
#include "runtime/http/client/tls_stream.hpp"

#include "runtime/core/text/shown.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

namespace shoal::runtime {
namespace {

using model::failure;

template <class Object, void (*Free)(Object*)>
struct freer {
  void operator()(Object* object) const { Free(object); }
};
template <class Object, void (*Free)(Object*)>
using owned = std::unique_ptr<Object, freer<Object, Free>>;

/// OpenSSL's last error, and none after it.
std::string library_error() {
  const unsigned long code = ::ERR_peek_last_error();
  ::ERR_clear_error();
  const char* reason = ::ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown error";
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1
         || ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

std::string date_text(const ASN1_TIME* time) {
  const owned<BIO, ::BIO_free_all> out(::BIO_new(::BIO_s_mem()));
  char* text = nullptr;
  if (!out || time == nullptr || ::ASN1_TIME_print(out.get(), time) != 1)
    return "an unknown date";
  const long size = ::BIO_get_mem_data(out.get(), &text);
  return core::shown({text, std::size_t(size)}, 64);
}

/// The names of a certificate: "a.org, *.b.org, ..."
std::string names_in(X509* certificate) {
  constexpr int names_max = 5;
  std::string out;
  auto* all = static_cast<GENERAL_NAMES*>(
    ::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  int count = 0;
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
    std::string text;
    if (name->type == GEN_DNS) {
      text.assign(
        reinterpret_cast<const char*>(::ASN1_STRING_get0_data(name->d.dNSName)),
        std::size_t(::ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const int size = ::ASN1_STRING_length(name->d.iPAddress);
      std::array<char, INET6_ADDRSTRLEN> buffer{};
      if ((size == 4 || size == 16)
          && ::inet_ntop(size == 4 ? AF_INET : AF_INET6,
                         ::ASN1_STRING_get0_data(name->d.iPAddress),
                         buffer.data(), buffer.size()))
        text = buffer.data();
    }
    if (text.empty())
      continue;
    if (++count > names_max) {
      out += ", ...";
      break;
    }
    out += (out.empty() ? "" : ", ") + core::shown(text, 256);
  }
  ::GENERAL_NAMES_free(all);
  return out.empty() ? "no name" : out;
}

/// Why a certificate was refused. @param certificate may be null
std::string refusal(long result, X509* certificate, const std::string& host) {
  const std::string its = "its certificate ";
  switch (result) {
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    return its + "is not for '" + host + "' but for "
           + (certificate ? names_in(certificate) : "another host");
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return its + "has expired on "
           + date_text(certificate ? ::X509_get0_notAfter(certificate)
                                   : nullptr)
           + ", by this machine's clock";
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return its + "is not valid before "
           + date_text(certificate ? ::X509_get0_notBefore(certificate)
                                   : nullptr)
           + ", by this machine's clock";
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    return its + "is of no authority that is trusted here ("
           + ::X509_verify_cert_error_string(result)
           + "): if it is to be, name the authority's certificate by --ca FILE "
             "or the variable SSL_CERT_FILE";
  default:
    return its + "is refused: " + ::X509_verify_cert_error_string(result);
  }
}

} // namespace

model::result<std::shared_ptr<const tls_trust>>
tls_trust::load(const std::filesystem::path& ca_file) {
  std::shared_ptr<tls_trust> out(
    new tls_trust(::SSL_CTX_new(::TLS_client_method())));
  SSL_CTX* const context = out->context_;
  if (context == nullptr)
    return failure{"TLS cannot be used: " + library_error()};
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE
                                | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const auto read = [&](const std::string& file) {
    return ::SSL_CTX_load_verify_file(context, file.c_str()) == 1;
  };
  if (!ca_file.empty()) {
    if (!std::filesystem::exists(ca_file))
      return failure{core::shown(ca_file.string()) + " does not exist"};
    if (!read(ca_file.string()))
      return failure{core::shown(ca_file.string())
                     + " has no certificate in PEM: " + library_error()};
    return std::shared_ptr<const tls_trust>(std::move(out));
  }
  // OpenSSL says nothing of such a file that it cannot use.
  if (const char* named = std::getenv(::X509_get_default_cert_file_env());
      named != nullptr && *named != 0 && !read(named))
    return failure{"the variable SSL_CERT_FILE names " + core::shown(named)
                   + ", which has no certificate in PEM: " + library_error()};
  if (::SSL_CTX_set_default_verify_paths(context) != 1)
    return failure{"the system's certificates cannot be read: "
                   + library_error()};
  return std::shared_ptr<const tls_trust>(std::move(out));
}

tls_trust::~tls_trust() {
  ::SSL_CTX_free(context_);
}

class tls_stream::impl {
public:
  impl(std::shared_ptr<const tls_trust> trust, int fd, std::string host)
    : trust_(std::move(trust)), fd_(fd), host_(std::move(host)),
      ssl_(::SSL_new(trust_->context_)) {
    BIO* in = ::BIO_new(::BIO_s_mem());
    BIO* out = ::BIO_new(::BIO_s_mem());
    if (!ssl_ || in == nullptr || out == nullptr) {
      ::BIO_free(in);
      ::BIO_free(out);
      fail("TLS has no memory");
      return;
    }
    ::BIO_set_mem_eof_return(in, -1); // empty: more may come
    ::SSL_set_bio(ssl_.get(), in, out);
    if (!demand_host())
      fail("a certificate cannot be checked for '" + host_ + "'");
  }

  step shake_hands() {
    return move([this] { return ::SSL_connect(ssl_.get()); }).is;
  }

  moved read(std::span<char> into) {
    return move(
      [&] { return ::SSL_read(ssl_.get(), into.data(), int(into.size())); });
  }

  moved write(std::string_view from) {
    const moved out = move(
      [&] { return ::SSL_write(ssl_.get(), from.data(), int(from.size())); });
    if (out.is == step::done)
      send_out(); // the rest goes with the next call
    return out;
  }

  bool in_order_ = false; ///< the other end has said that it has ended
  std::string error_;

private:
  /// Sets the host to check, and to ask for.
  bool demand_host() {
    // Of one protocol: a server that knows others uses none of them.
    static constexpr unsigned char protocol[] = "\x08http/1.1";
    ::SSL_set_connect_state(ssl_.get());
    ::SSL_set_ex_data(ssl_.get(), 0, this);
    ::SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, &impl::keep_refused);
    if (::SSL_set_alpn_protos(ssl_.get(), protocol, sizeof protocol - 1) != 0)
      return false;
    if (is_address(host_))
      return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl_.get()),
                                             host_.c_str())
             == 1;
    ::SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return ::SSL_set1_host(ssl_.get(), host_.c_str()) == 1
           && SSL_set_tlsext_host_name(ssl_.get(), host_.c_str()) == 1;
  }

  /// OpenSSL drops a certificate that it refuses; why is told by it.
  static int keep_refused(int accepted, X509_STORE_CTX* check) {
    if (accepted == 1)
      return accepted;
    auto* ssl = static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(
      check, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto* self = static_cast<impl*>(::SSL_get_ex_data(ssl, 0));
    X509* certificate = ::X509_STORE_CTX_get_current_cert(check);
    if (certificate != nullptr && ::X509_up_ref(certificate) == 1)
      self->refused_.reset(certificate);
    return accepted;
  }

  moved fail(const std::string& why) {
    if (error_.empty())
      error_ = why;
    return {step::failed};
  }

  moved fail_of_socket() {
    return fail("the connection broke: "
                + std::generic_category().message(errno));
  }

  /// Calls until there is a result, or the socket has to be waited for.
  template <class Call>
  moved move(Call call) {
    for (;;) {
      if (!error_.empty())
        return {step::failed};
      ::ERR_clear_error();
      const int result = call();
      if (result > 0)
        return {step::done, std::size_t(result)};
      const int why = ::SSL_get_error(ssl_.get(), result);
      // What it has to say may be why it fails: an alert.
      const step sent = send_out();
      if (why == SSL_ERROR_ZERO_RETURN) {
        in_order_ = true;
        return {step::closed};
      }
      if (why != SSL_ERROR_WANT_READ)
        return fail(what_failed());
      // A server may answer and refuse what it has not read: so this end reads
      // also while it cannot send.
      const step got = take_in();
      if (got == step::wants_read && sent == step::wants_write)
        return {step::wants_any};
      if (got != step::done)
        return {got};
    }
  }

  std::string what_failed() const {
    const long verified = ::SSL_get_verify_result(ssl_.get());
    if (verified != X509_V_OK) {
      ::ERR_clear_error();
      return refusal(verified, refused_.get(), host_);
    }
    const int reason = ERR_GET_REASON(::ERR_peek_last_error());
    const std::string text = library_error();
    return reason == SSL_R_WRONG_VERSION_NUMBER
             ? "it does not answer by TLS; is it an http:// address?"
             : "TLS failed: " + text;
  }

  /// Sends what TLS has made. @returns done if all of it has gone, or the other end
  /// takes no more: what it has answered tells more than that
  step send_out() {
    std::array<char, 16 << 10> piece{};
    for (;;) {
      if (cut_)
        return step::done;
      if (unsent_.empty()) {
        const int n = ::BIO_read(::SSL_get_wbio(ssl_.get()), piece.data(),
                                 int(piece.size()));
        if (n <= 0)
          return step::done;
        unsent_.assign(piece.data(), std::size_t(n));
      }
      const ssize_t sent =
        ::send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR)
        continue;
      if (sent < 0 && errno == EAGAIN)
        return step::wants_write;
      if (sent < 0) {
        cut_ = true;
        unsent_ = {};
        continue;
      }
      unsent_.erase(0, std::size_t(sent));
    }
  }

  step take_in() {
    std::array<char, 16 << 10> piece{};
    for (;;) {
      const ssize_t got = ::recv(fd_, piece.data(), piece.size(), 0);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0 && errno == EAGAIN)
        return step::wants_read;
      if (got < 0)
        return fail_of_socket().is;
      if (got == 0)
        return ::SSL_is_init_finished(ssl_.get())
                 ? step::closed
                 : fail("it ended the connection before TLS was set up").is;
      ::BIO_write(::SSL_get_rbio(ssl_.get()), piece.data(), int(got));
      return step::done;
    }
  }

  const std::shared_ptr<const tls_trust> trust_;
  const int fd_;
  const std::string host_;
  owned<SSL, ::SSL_free> ssl_;
  std::string unsent_;
  bool cut_ = false;                 ///< the other end takes no more
  owned<X509, ::X509_free> refused_; ///< a certificate of its chain
};

tls_stream::tls_stream(std::shared_ptr<const tls_trust> trust, int fd,
                       const std::string& host)
  : impl_(std::make_unique<impl>(std::move(trust), fd, host)) {
}

tls_stream::~tls_stream() = default;

client_stream::step tls_stream::shake_hands() {
  return impl_->shake_hands();
}

client_stream::moved tls_stream::read(std::span<char> into) {
  return impl_->read(into);
}

client_stream::moved tls_stream::write(std::string_view from) {
  return impl_->write(from);
}

bool tls_stream::closed_in_order() const {
  return impl_->in_order_;
}

const std::string& tls_stream::error() const {
  return impl_->error_;
}

} // namespace shoal::runtime
