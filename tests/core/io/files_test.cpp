#include "core/io/files.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

TEST_CASE("a file is there whole, or what was there before stays") {
  const TemporaryFolder folder;
  write_whole(folder.path() / "a", {"first"}, "test");
  {
    WholeFile file(folder.path() / "a", "test");
    file.write("second, never kept");
  }
  CHECK(read_whole(folder.path() / "a", "test") == "first");
  write_whole(folder.path() / "a", {"third", " time"}, "test");
  CHECK(read_whole(folder.path() / "a", "test") == "third time");
  CHECK(folder.entries() == 1);
}

TEST_CASE("writing to a link changes the file that it leads to, over other links too") {
  const TemporaryFolder folder;
  write_whole(folder.path() / "target", {"old"}, "test");
  fs::create_symlink("target", folder.path() / "near");
  fs::create_symlink(folder.path() / "near", folder.path() / "far");
  write_whole(folder.path() / "far", {"new"}, "test");
  CHECK(fs::is_symlink(folder.path() / "far"));
  CHECK(fs::is_symlink(folder.path() / "near"));
  CHECK(read_whole(folder.path() / "target", "test") == "new");
  fs::create_symlink("later", folder.path() / "ahead");
  write_whole(folder.path() / "ahead", {"now"}, "test");
  CHECK(fs::is_symlink(folder.path() / "ahead"));
  CHECK(read_whole(folder.path() / "later", "test") == "now");
}

TEST_CASE("a pipe is written into and stays a pipe") {
  const TemporaryFolder folder;
  const std::string pipe = (folder.path() / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream file(pipe);
    std::getline(file, got);
  });
  write_whole(pipe, {"through"}, "test");
  reader.join();
  CHECK(got == "through");
  CHECK(fs::is_fifo(pipe));
  CHECK(folder.entries() == 1);
}

TEST_CASE("the null device swallows what is written and stays a device") {
  write_whole("/dev/null", {"nothing"}, "test");
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("a folder, and a file in a folder that is not there, cannot be written") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "inner");
  CHECK_THROWS_AS(write_whole(folder.path() / "inner", {"x"}, "test"), NotSupportedError);
  CHECK_THROWS_AS(write_whole(folder.path() / "none/a", {"x"}, "test"), NotSupportedError);
  CHECK(folder.entries() == 1);
}

}  // namespace
}  // namespace lockstep
