#include "visualizer/app/worker.h"

#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace lockstep::app {
namespace {

/// A request that is younger goes on when a newer one comes: whoever drags a slider wants to see
/// what lies between.
constexpr std::chrono::milliseconds kGrace(100);

[[noreturn]] void interrupt() {
  throw InterruptedError("worker", "no longer wanted");
}

}  // namespace

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    stop_ = true;
    next_.reset();
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::ask(Request request) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(request);
    newer_ = true;
  }
  changed_.notify_all();
}

void Worker::cancel() {
  {
    const std::lock_guard lock(mutex_);
    next_.reset();
    newer_ = false;
    stop_ = running_;
  }
  changed_.notify_all();
}

double Worker::seconds() const {
  const std::lock_guard lock(mutex_);
  return running_ ? std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count()
                  : 0;
}

void Worker::add(const std::shared_ptr<Errand>& errand) {
  {
    const std::lock_guard lock(mutex_);
    errands_.push_back(errand);
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

bool Worker::rests() const {
  const std::lock_guard lock(mutex_);
  return !running_ && !next_ && errands_.empty();
}

void Worker::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !running_ && !next_ && errands_.empty(); });
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return quit_ || next_ || !errands_.empty(); });
    if (quit_) {
      return;
    }
    if (next_) {
      run_request(lock);
    } else {
      run_errand(lock);
    }
    changed_.notify_all();
  }
}

void Worker::run_request(std::unique_lock<std::mutex>& lock) {
  const Request request = *std::exchange(next_, std::nullopt);
  newer_ = false;
  running_ = true;
  since_ = std::chrono::steady_clock::now();
  lock.unlock();
  std::optional<Result> result = answer(request);
  lock.lock();
  if (result && !stop_) {
    result_ = std::move(result);
  }
  running_ = false;
  stop_ = quit_;
}

void Worker::run_errand(std::unique_lock<std::mutex>& lock) {
  // Stays in the list while it runs: the thread has not come to rest.
  std::shared_ptr<Errand> errand = errands_.front().lock();
  bool more = false;
  if (errand != nullptr) {
    lock.unlock();
    try {
      more = errand->step([&] { check_errand(errand); });
    } catch (const InterruptedError&) {
      more = true;  // forgotten at its next turn if nobody wants it
    }
    errand.reset();
    lock.lock();
  }
  if (!more) {
    errands_.erase(errands_.begin());  // new ones are added behind it
  }
}

namespace {

/// What a path holds, simulated where it is only a scenario.
DocumentPtr document_of(const std::string& path, const StopCheck& stop_check) {
  Opened opened = open_path(path, stop_check);
  if (opened.document != nullptr && opened.document->imported != nullptr) {
    throw BadInputError("open",
                        fmt::format("{}: the trace of another tool has no plan to compare by; the "
                                    "files of all ranks open together as one folder",
                                    path));
  }
  return opened.document != nullptr ? std::move(opened.document)
                                    : simulate_document(opened.scenario, stop_check);
}

}  // namespace

void Worker::check_request() const {
  if (stop_ || (newer_ && std::chrono::steady_clock::now() - since_ > kGrace)) {
    interrupt();
  }
}

void Worker::check_errand(const std::shared_ptr<Errand>& errand) const {
  if (stop_ || newer_ || errand.use_count() == 1) {
    interrupt();
  }
}

/// Whatever goes wrong is a sentence for a dialog: the window goes on.
std::optional<Result> Worker::answer(const Request& request) {
  Result result{.number = request.number, .path = request.path};
  const StopCheck stop_check = [this] { check_request(); };
  try {
    Scenario scenario = request.scenario;
    result.document = request.document != nullptr && request.step >= 0
                          ? at_step(*request.document, request.step)
                          : request.document;
    if (!request.path.empty()) {
      Opened opened = open_path(request.path, stop_check);
      if (opened.record != nullptr) {
        result.record = std::move(opened.record);
        return result;
      }
      scenario = opened.scenario;
      result.opened = std::move(opened.scenario);
      result.file = std::move(opened.file);
      result.document = std::move(opened.document);
    }
    if (result.document == nullptr && validate(resolved(scenario)).empty()) {
      result.document = simulate_document(scenario, stop_check);
    }
    if (!request.baseline.empty()) {
      result.baseline = document_of(request.baseline, stop_check);
    }
  } catch (const InterruptedError&) {
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    result.error = "[memory] this machine has not enough of it for that";
    result.failure = std::current_exception();
  } catch (const std::exception& error) {
    result.error = error.what();
    result.failure = std::current_exception();
  }
  return result;
}

}  // namespace lockstep::app
