// tests/bench/mpi_allreduce.cpp -- the time of MPI_Allreduce, for tools/bench.
//
// Usage: mpirun -np N mpi_allreduce RUNS BYTES...
// Prints a line "BYTES SECONDS" for each run: in place, floats, from a barrier
// to the end of the slowest rank, as `shoal bench allreduce` measures itself.
#define OMPI_SKIP_MPICXX // its C++ names are long gone
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int runs = argc > 1 ? std::atoi(argv[1]) : 5;
  for (int i = 2; i < argc; ++i) {
    const long bytes = std::atol(argv[i]);
    std::vector<float> values(std::size_t(bytes) / sizeof(float));
    for (int run = 0; run <= runs; ++run) {
      std::ranges::fill(values, float(rank + 1));
      MPI_Barrier(MPI_COMM_WORLD);
      const double began = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, values.data(), int(values.size()), MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
      const double mine = MPI_Wtime() - began;
      const auto wanted = float(ranks * (ranks + 1) / 2);
      if (values.front() != wanted || values.back() != wanted)
        MPI_Abort(MPI_COMM_WORLD, 1);
      double slowest = 0;
      MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (rank == 0 && run > 0) // the first one warms up
        std::printf("%ld %.9f\n", bytes, slowest);
    }
  }
  MPI_Finalize();
}
