#include "cli/terminal.h"

#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/error.h"

namespace lockstep::cli {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

Terminal stdout_terminal() {
  Terminal terminal;
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::strcmp(kind, "dumb") == 0;
  terminal.colour = isatty(STDOUT_FILENO) == 1 && !dumb && !is_set("NO_COLOR");
  // The locale is the user's for this question alone: numbers are printed alike everywhere.
  std::setlocale(LC_CTYPE, "");
  terminal.utf8 = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  std::setlocale(LC_CTYPE, "C");
  return terminal;
}

int terminal_width() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 100;
}

bool print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      return false;
    } else if (errno != EINTR) {
      throw NotSupportedError("output",
                              fmt::format("cannot write to stdout: {}", std::strerror(errno)));
    }
  }
  return true;
}

bool Printer::add(std::string_view text) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  pending_ += text;
  return pending_.size() < kPiece ? open_ : finish();
}

bool Printer::finish() {
  open_ = open_ && print(pending_);
  pending_.clear();
  return open_;
}

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (isatty(STDERR_FILENO) == 1) {
    thread_ = std::thread([this] { run(); });
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  int seconds = 0;
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
    fmt::print(stderr, "\r{}: {} s ", what_, ++seconds);
    std::fflush(stderr);
  }
  if (seconds > 0) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

}  // namespace lockstep::cli
