# tests/bench/llama_rates.py -- llama.cpp's tokens per second, when asked.
#
# Usage: PYTHON llama_rates.py MODEL.gguf THREADS     (a Python with llama_cpp)
#
# Reads lines "prefill N" and "decode N" and answers each with tokens per
# second: of a prompt of N tokens into an empty cache in one batch, and of N
# single tokens from an empty cache, as llama-bench's pp and tg do. The first
# line that is written says "ready".
import ctypes
import sys
import time

import llama_cpp as llama


def main():
    quiet = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(quiet, ctypes.c_void_p(0))
    llama.llama_backend_init()
    how = llama.llama_model_default_params()
    how.n_gpu_layers = 0
    load = getattr(llama, "llama_model_load_from_file", None)
    model = (load or llama.llama_load_model_from_file)(
        sys.argv[1].encode(), how)
    if not model:
        sys.exit("llama.cpp cannot load " + sys.argv[1])
    params = llama.llama_context_default_params()
    params.n_ctx = 1024
    params.n_batch = params.n_ubatch = 512
    params.n_threads = params.n_threads_batch = int(sys.argv[2])
    context = llama.llama_init_from_model(model, params)
    vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))

    def decode(ids):
        tokens = (llama.llama_token * len(ids))(*ids)
        batch = llama.llama_batch_get_one(tokens, len(ids))
        if llama.llama_decode(context, batch) != 0:
            sys.exit("llama.cpp cannot decode")
        llama.llama_synchronize(context)

    def run(what, count):
        ids = [i * 7919 % vocabulary for i in range(count)]
        llama.llama_memory_clear(llama.llama_get_memory(context), True)
        start = time.perf_counter()
        if what == "prefill":
            decode(ids)
        else:
            for one in ids:
                decode([one])
        return count / (time.perf_counter() - start)

    run("prefill", 64)
    run("decode", 2)
    print("ready", flush=True)
    for line in sys.stdin:
        what, count = line.split()
        print(run(what, int(count)), flush=True)


if __name__ == "__main__":
    main()
