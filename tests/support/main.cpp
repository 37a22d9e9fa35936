// The main() of every test program, in a file of its own: with Catch2 version 2 it takes seconds to
// compile, and no test file should pay for that.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
