// tests/sim/shoal/limits.cpp -- checks the memory and queues of a process:
// within its limits, and empty at the end.
//
// The product's limits are checked from outside ten times a second of simulated
// time. Limits of queues that a load of this size could never fill are so far
// away that only their owners' own checks enforce them; memory is compared with
// what this job can need.
#include "tests/sim/shoal/node.hpp"

namespace shoal::sim {

void sim_node::check_most(std::size_t are, std::size_t most,
                          const char* of_what) {
  if (are > most)
    world_.fail("m" + std::to_string(home_.number) + " has "
                + std::to_string(are) + " " + of_what + ", "
                + std::to_string(most) + " are the limit");
}

void sim_node::check_limits() {
  using links = runtime::link_service;
  using blobs = runtime::blob_exchange;
  links_->list_queues([this](const links::queues& q) {
    check_most(q.transfers, links::transfers_max, "transfers with one peer");
    check_most(q.early_credits, links::early_credits_max, "early credits");
    check_most(q.finished, links::finished_max, "finished receives");
    check_most(q.outbox, links::outbox_max, "credits in an outbox");
    check_most(q.cancelled_plans, links::cancelled_plans_max,
               "cancelled sub-plans");
  });
  exchange_->list_queues([this](const blobs::queues& q) {
    check_most(q.fetches, blobs::fetches_max, "fetches");
    check_most(q.waiting, blobs::waiting_max, "fetches that wait");
    check_most(q.joined, blobs::joined_max, "callbacks of one fetch");
    check_most(q.fetched_chunks, blobs::window, "chunks of one fetch");
    check_most(q.served, blobs::served_per_peer_max, "requests of one peer");
  });
  check_most(gate_.held_bytes(), runtime::gate::all_bytes_max,
             "bytes in its gate");
  check_most(memory_->bytes(), world_.buffer_bytes_max(), "bytes in buffers");
  world_.holds(memory_->bytes(), watched_->open());
}

std::string sim_node::left_over() const {
  if (watched_->open() > 0)
    return std::to_string(watched_->open()) + " transfers are open ("
           + watched_->an_open_one() + ")";
  if (system_->registry().running() != actors_at_rest_)
    return std::to_string(system_->registry().running() - actors_at_rest_)
           + " actors are left";
  if (memory_->bytes() > 0)
    return std::to_string(memory_->bytes()) + " bytes of buffers are left";
  return {};
}

} // namespace shoal::sim
