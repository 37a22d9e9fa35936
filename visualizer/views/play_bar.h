// PlayBar: moves the time that a view is painted at: it plays, steps from event to event, and is
// dragged. Space plays and pauses, `,` and `.` step, arrows move, Home and End go to the ends.
//
//     bar_.use(model.whole(), times_of_events);
//     const Nanoseconds now = bar_.draw(session, first, has_keys);
#pragma once

#include <vector>

#include "visualizer/app/session.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

/// The session's time inside of `whole`; `otherwise` where it has none.
Nanoseconds time_of(const app::Session& session,
                    const view::TimeWindow& whole,
                    Nanoseconds otherwise);
/// Arrows, Home and End move the session's time from `now`.
void move_time(app::Session& session, const view::TimeWindow& whole, Nanoseconds now);

class PlayBar {
 public:
  /// Begins anew, paused.
  void use(const view::TimeWindow& whole, std::vector<Nanoseconds> events);
  /// A row of buttons and a slider as wide as the region; changes the session's time. Returns the
  /// time to paint: `first` while nobody has chosen one.
  Nanoseconds draw(app::Session& session, Nanoseconds first, bool has_keys);

  static std::vector<KeyHelp> keys();

 private:
  void buttons(app::Session& session, Nanoseconds now, bool has_keys);
  void slider(app::Session& session, Nanoseconds now) const;
  void toggle(app::Session& session, Nanoseconds now);
  void step(app::Session& session, Nanoseconds now, int direction);

  view::TimeWindow whole_;
  std::vector<Nanoseconds> events_;  ///< ascending, each once
  bool playing_ = false;
  double speed_ = 1;
  double part_ = 0;  ///< of a nanosecond that is still to be played
};

}  // namespace lockstep::views
