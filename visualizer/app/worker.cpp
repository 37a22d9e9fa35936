#include "visualizer/app/worker.h"

#include <exception>
#include <new>
#include <utility>

namespace lockstep::app {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    next_.reset();
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::ask(Request request) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(request);
  }
  changed_.notify_all();
}

std::optional<Result> Worker::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(result_, std::nullopt);
}

bool Worker::idle() const {
  const std::lock_guard lock(mutex_);
  return !running_ && !next_;
}

void Worker::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !running_ && !next_; });
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return quit_ || next_; });
    if (quit_) {
      return;
    }
    const Request request = *std::exchange(next_, std::nullopt);
    running_ = true;
    lock.unlock();
    Result result = answer(request);
    lock.lock();
    result_ = std::move(result);
    running_ = false;
    changed_.notify_all();
  }
}

/// Whatever goes wrong is a sentence for a dialog: the window goes on.
Result Worker::answer(const Request& request) {
  Result result{.number = request.number, .path = request.path};
  try {
    Scenario scenario = request.scenario;
    if (!request.path.empty()) {
      Opened opened = open_path(request.path);
      if (opened.record != nullptr) {
        result.record = std::move(opened.record);
        return result;
      }
      scenario = opened.scenario;
      result.opened = std::move(opened.scenario);
      result.document = std::move(opened.document);
    }
    if (result.document == nullptr && validate(resolved(scenario)).empty()) {
      result.document = simulate_document(scenario);
    }
  } catch (const std::bad_alloc&) {
    result.error = "[memory] this machine has not enough of it for that";
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

}  // namespace lockstep::app
