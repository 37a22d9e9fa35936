// BucketsView: gradients of one rank drop into buckets, which are reduced over the data-parallel
// ranks: parameters, buckets as vessels, and two lanes of time, all as of the time that is played.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "visualizer/models/buckets.h"
#include "visualizer/ui/draw.h"
#include "visualizer/views/play_bar.h"
#include "visualizer/views/rank_chooser.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

/// "A", "Z", "AA"
std::string bucket_letters(std::size_t bucket);

class BucketsView : public View {
 public:
  const char* id() const override { return "buckets"; }
  ui::S title() const override { return ui::S::kBucketsView; }
  ui::S about() const override { return ui::S::kBucketsAbout; }
  void draw(ViewContext& context, bool has_keys) override;
  std::string text(const ViewContext& context) override;
  bool json(JsonWriter& json, const ViewContext& context) override;
  view::DetailLines details(const ViewContext& context) override;
  void draw_details(ViewContext& context) override;
  std::vector<KeyHelp> keys() const override;

 private:
  void use(const app::DocumentPtr& document);
  void make_model();
  /// A moment at which something can be seen.
  Nanoseconds first_time() const;
  std::optional<std::size_t> selected_launch(const app::Session& session) const;
  std::optional<std::size_t> selected_bucket(const app::Session& session) const;
  void select(app::Session& session, std::size_t bucket) const;
  void walk(app::Session& session) const;

  void draw_readouts() const;
  void draw_parameters(app::Session& session, const ImVec2& size);
  void draw_parameter(app::Session& session, std::int32_t parameter, bool is_in) const;
  void draw_vessels(app::Session& session, const ImVec2& size);
  void draw_vessel(const ui::Rect& cell, std::size_t bucket, bool selected) const;
  /// Bytes of a vessel's height: each is full near its rim, whatever its size.
  std::int64_t capacity(std::size_t bucket) const;
  void draw_content(const ui::Rect& vessel, std::size_t bucket) const;
  void draw_lanes(app::Session& session, const ImVec2& size) const;
  void draw_compute(const ui::Rect& lane) const;
  void draw_reductions(const ui::Rect& lane, const app::Session& session) const;
  void draw_tail(const ui::Rect& lanes, const ui::Rect& strip) const;
  void draw_launches(app::Session& session) const;

  app::DocumentPtr document_;  ///< what the models below are of
  RankChooser chooser_;
  PlayBar bar_;
  std::unique_ptr<view::Timeline> timeline_;
  std::unique_ptr<view::Buckets> buckets_;
  std::vector<std::int32_t> order_;  ///< parameters as the buckets take them
  Nanoseconds now_ = 0;              ///< what is painted
  Nanoseconds listed_ = -1;          ///< the time to which the list was scrolled
  std::vector<view::BucketState> states_;
};

}  // namespace lockstep::views
