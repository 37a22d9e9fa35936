#include "executor/local_group.h"

namespace lockstep::exec {

template <typename Act>
void LocalGroup::each_waker(Act act) {
  act(arrivals.waker);
  act(finishes.waker);
  for (int i = 0; i < size(); ++i) {
    act(slot(i).steps_waker);
    act(mailbox(i).waker());
  }
}

LocalGroup::LocalGroup(std::shared_ptr<LocalWorld> world,
                       std::uint64_t number,
                       std::vector<int> members)
    : world_(std::move(world)),
      number_(number),
      members_(std::move(members)),
      slots_(std::make_unique<Slot[]>(members_.size())),
      mailboxes_(std::make_unique<Mailbox[]>(members_.size())) {
  each_waker([this](Waker& waker) { world_->attach(waker); });
}

LocalGroup::~LocalGroup() {
  each_waker([this](Waker& waker) { world_->detach(waker); });
}

}  // namespace lockstep::exec
