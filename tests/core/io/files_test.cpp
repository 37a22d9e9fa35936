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

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// An empty folder of its own, gone with the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "lockstep-files-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const char* name) const { return path_ / name; }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

TEST_CASE("a file is there whole, or what was there before stays") {
  const Folder folder;
  write_whole(folder / "a", {"first"}, "test");
  {
    WholeFile file(folder / "a", "test");
    file.write("second, never kept");
  }
  CHECK(read_whole(folder / "a", "test") == "first");
  write_whole(folder / "a", {"third", " time"}, "test");
  CHECK(read_whole(folder / "a", "test") == "third time");
  CHECK(folder.entries() == 1);
}

TEST_CASE("writing to a link changes the file that it leads to, over other links too") {
  const Folder folder;
  write_whole(folder / "target", {"old"}, "test");
  fs::create_symlink("target", folder / "near");
  fs::create_symlink(folder / "near", folder / "far");
  write_whole(folder / "far", {"new"}, "test");
  CHECK(fs::is_symlink(folder / "far"));
  CHECK(fs::is_symlink(folder / "near"));
  CHECK(read_whole(folder / "target", "test") == "new");
  fs::create_symlink("later", folder / "ahead");
  write_whole(folder / "ahead", {"now"}, "test");
  CHECK(fs::is_symlink(folder / "ahead"));
  CHECK(read_whole(folder / "later", "test") == "now");
}

TEST_CASE("a pipe is written into and stays a pipe") {
  const Folder folder;
  const std::string pipe = (folder / "pipe").string();
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
  const Folder folder;
  fs::create_directory(folder / "inner");
  CHECK_THROWS_AS(write_whole(folder / "inner", {"x"}, "test"), NotSupportedError);
  CHECK_THROWS_AS(write_whole(folder / "none/a", {"x"}, "test"), NotSupportedError);
  CHECK(folder.entries() == 1);
}

}  // namespace
}  // namespace lockstep
