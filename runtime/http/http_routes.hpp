// runtime/http/http_routes.hpp -- a handler made of one function for each path.
//
// It answers the rest itself: 404 for an unknown path, 405 with Allow for a
// method that the path lacks, 415 for a body that is not of the route's type.
// HEAD is answered by GET's function; the server leaves out the body.
//
// Threads: add() before the server starts; the functions run on its thread.
#pragma once

#include "runtime/http/http_exchange.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::runtime {

class http_routes : public http_handler {
public:
  using function = std::function<void(std::shared_ptr<http_exchange>)>;

  /// @param path  exact, or "/jobs/{job}/end" for any part of a path in place of
  ///              the braces, or "/v1/models/*" for all paths that go on after the
  ///              slash; they have priority in this order, then the longest
  /// @param body_type  "application/json": what the Content-Type must be; "":
  ///                   any
  void add(std::string method, std::string path, function answer,
           std::string body_type = "");

  /// Method and path of each.
  std::vector<std::pair<std::string, std::string>> all() const;

  std::optional<openai::api_error> check(const http_request& head) override;
  std::string allowed_methods(const http_request& head) override;
  void on_request(std::shared_ptr<http_exchange> exchange) override;

private:
  struct route {
    std::string method;
    std::string path;
    std::string body_type;
    function answer;
  };
  /// The routes of the best pattern for a path.
  std::vector<const route*> of(const std::string& path) const;
  const route* find(const http_request& head) const;

  std::vector<route> routes_;
};

} // namespace shoal::runtime
