// apps/shoal.cpp -- the program: parses, registers the roles, runs.
int main() { return 2; }
