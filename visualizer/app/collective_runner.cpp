#include "visualizer/app/collective_runner.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io/collective_io.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kComponent = "collective";

/// Exists until the object dies.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "lockstep-view-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      throw NotSupportedError(kComponent, fmt::format("{} cannot be made", path_));
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string moves_of(const std::string& folder) {
  return folder + "/moves.json";
}
std::string errors_of(const std::string& folder) {
  return folder + "/errors.txt";
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

CollectiveRunner::CollectiveRunner() {
  std::error_code ignored;
  program_ = (fs::read_symlink("/proc/self/exe", ignored).parent_path() / "lockstep").string();
}

CollectiveRunner::~CollectiveRunner() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    next_.reset();
    if (child_ > 0) {
      kill(child_, SIGTERM);
    }
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::string CollectiveRunner::program() const {
  const std::lock_guard lock(mutex_);
  return program_;
}

void CollectiveRunner::set_program(std::string program) {
  const std::lock_guard lock(mutex_);
  program_ = std::move(program);
}

void CollectiveRunner::ask(CollectiveRequest request) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(request);
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
}

std::optional<CollectiveAnswer> CollectiveRunner::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answer_, std::nullopt);
}

bool CollectiveRunner::idle() const {
  const std::lock_guard lock(mutex_);
  return !running_ && !next_;
}

void CollectiveRunner::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !running_ && !next_; });
}

void CollectiveRunner::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return quit_ || next_; });
    if (quit_) {
      return;
    }
    const CollectiveRequest request = *std::exchange(next_, std::nullopt);
    const std::string program = program_;
    running_ = true;
    lock.unlock();
    CollectiveAnswer made = answer(request, program);
    lock.lock();
    answer_ = std::move(made);
    running_ = false;
    changed_.notify_all();
  }
}

CollectiveAnswer CollectiveRunner::answer(const CollectiveRequest& request,
                                          const std::string& program) {
  try {
    if (!fs::exists(program)) {
      throw NotSupportedError(
          kComponent,
          fmt::format("{} is missing: the moves are made by the lockstep program beside "
                      "lockstep-view; a file of `lockstep collective --out FILE` can be opened "
                      "instead",
                      program));
    }
    const TemporaryFolder folder;
    if (const int status = run_child(request, program, folder.path()); status != 0) {
      throw NotSupportedError(
          kComponent,
          fmt::format(
              "{} ended with {}: {}", program, status, first_line(errors_of(folder.path()))));
    }
    return {std::make_shared<const CollectiveRecord>(load_collective(moves_of(folder.path()))), ""};
  } catch (const std::exception& error) {
    return {nullptr, error.what()};
  }
}

/// Its exit code; -1 when a signal ended it.
int CollectiveRunner::run_child(const CollectiveRequest& request,
                                const std::string& program,
                                const std::string& folder) {
  std::array<std::string, 10> words{program,
                                    "collective",
                                    "--algorithm",
                                    request.algorithm,
                                    "--ranks",
                                    std::to_string(request.ranks),
                                    "--bytes",
                                    std::to_string(request.bytes),
                                    "--out",
                                    moves_of(folder)};
  std::array<char*, 11> arguments{};  // the last stays null
  for (std::size_t i = 0; i < words.size(); ++i) {
    arguments[i] = words[i].data();
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(
      &files, STDERR_FILENO, errors_of(folder).c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t child = 0;
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    error = posix_spawn(&child, program.c_str(), &files, nullptr, arguments.data(), environ);
    child_ = error == 0 ? child : 0;
    if (error == 0 && quit_) {
      kill(child, SIGTERM);
    }
  }
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    throw NotSupportedError(kComponent, fmt::format("{} cannot be started", program));
  }
  // Left a zombie until the number is forgotten, so that nobody else can have it.
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  child_ = 0;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace lockstep::app
