#!/usr/bin/env bash
# tests/rdma/conformance.sh -- the fabric suite over verbs, in a VM.
#
# Usage: tools/rdma-vm bash tests/rdma/conformance.sh CONFORMANCE_NETWORK [SUITE/CASE]
# What silently went another way has failed: the devices count the packets that
# they send.
set -euo pipefail

packets() {
  cat /sys/class/infiniband/rxe[01]/ports/1/hw_counters/sent_pkts |
    awk '{sum += $1} END {print sum}'
}

before=$(packets)
SHOAL_RDMA_DEVICES=rxe0:1,rxe1:1 SHOAL_HANG_AFTER=${SHOAL_HANG_AFTER:-300} \
  UCX_ERROR_SIGNALS= BOOST_TEST_REPORT_LEVEL=short \
  "$1" --run_test="${2:-ucx_rdma_*}" --log_level=unit_scope 2>&1 |
  { grep -v 'is skipped because disabled' || true; }
sent=$(($(packets) - before))
echo "RDMA packets sent: $sent"
# 64 MiB alone are 16,384 packets of 4 KiB.
[ $# -gt 1 ] || [ "$sent" -ge 16384 ] || { echo "FAILED: too few"; exit 1; }
