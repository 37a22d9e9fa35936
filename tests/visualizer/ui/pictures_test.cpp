// A few small pictures, pixel by pixel: hatches, boxes, lanes, buckets and plots as they are drawn
// without a display. They lie in tests/visualizer/goldens; after a wanted change look at the new
// ones and keep them:
//
//     LOCKSTEP_UPDATE_PICTURES=1 build/release/bin/lockstep_tests_window "picture of*"
//
// Every channel may be off by one of 255: what is halfway between two values is rounded either way
// by compilers. A picture that differs is left beside the test program with what differs in red.
#include "tests/visualizer/support/pictures.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "visualizer/shot/rasteriser.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/draw.h"
#include "visualizer/ui/plot.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/lanes_pane.h"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

constexpr int kAllowed = 1;

struct ContextDeleter {
  void operator()(ImGuiContext* context) const { ImGui::DestroyContext(context); }
};

/// Draws `scene` into a window that fills the picture. Twice: sizes may depend on the frame before.
shot::Image picture(int width, int height, ui::ThemeId theme, const std::function<void()>& scene) {
  const std::unique_ptr<ImGuiContext, ContextDeleter> context(ImGui::CreateContext());
  ImGui::SetCurrentContext(context.get());
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.DeltaTime = 1.0F / 60.0F;
  io.DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  ui::map_keys(io);
  ui::State state;
  state.theme = &ui::theme_of(theme);
  state.fonts = ui::build_fonts(*io.Fonts, 1);
  io.FontDefault = state.fonts.text;
  ui::attach(state);
  ui::apply(*state.theme, 1, ImGui::GetStyle());
  for (int i = 0; i < 2; ++i) {
    ImGui::NewFrame();
    state.tags.begin_frame();
    ImGui::SetNextWindowPos(ImVec2(0, 0));
    ImGui::SetNextWindowSize(io.DisplaySize);
    ImGui::Begin("##scene", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
    scene();
    ImGui::End();
    ImGui::Render();
  }
  shot::Texture texture;
  unsigned char* alpha = nullptr;
  io.Fonts->GetTexDataAsAlpha8(&alpha, &texture.width, &texture.height);
  texture.alpha = alpha;
  shot::Image image(width, height, {0, 0, 0, 255});
  shot::rasterise(*ImGui::GetDrawData(), texture, image);
  io.UserData = nullptr;
  return image;
}

void check(const std::string& name, const shot::Image& image) {
  const std::string golden = "tests/visualizer/goldens/" + name + ".png";
  if (std::getenv("LOCKSTEP_UPDATE_PICTURES") != nullptr) {
    shot::save_png(golden, image);
    return;
  }
  if (IMGUI_VERSION_NUM != 18600) {
    WARN("the pictures are those of Dear ImGui 1.86, this is " IMGUI_VERSION);
    return;
  }
  const test::Difference difference = test::difference(test::read_png(golden), image);
  if (!difference.same_size || difference.worst > kAllowed) {
    const fs::path folder(LOCKSTEP_PICTURES);
    fs::create_directories(folder);
    shot::save_png((folder / (name + ".png")).string(), image);
    if (difference.same_size) {
      shot::save_png((folder / (name + "_difference.png")).string(), difference.picture);
    }
    WARN(name << ": see " << folder.string());
  }
  CHECK(difference.same_size);
  CHECK(difference.worst <= kAllowed);
}

ImDrawList& list() {
  return *ImGui::GetWindowDrawList();
}

/// All paints and all kinds of memory, with letters and names.
void palette() {
  for (int i = 0; i < view::kPaintCount; ++i) {
    const auto paint = static_cast<view::Paint>(i);
    ui::legend_entry(list(),
                     ImVec2(8, 8 + 18 * static_cast<float>(i)),
                     ui::theme().look(paint),
                     letter_of(paint),
                     name_of(paint));
  }
  for (std::size_t i = 0; i < ui::theme().memory.size(); ++i) {
    ui::legend_entry(list(),
                     ImVec2(168, 8 + 18 * static_cast<float>(i)),
                     ui::theme().memory[i],
                     static_cast<char>('A' + i),
                     i < kCategoryCount ? name_of(static_cast<Category>(i)) : "other");
  }
}

/// Two rows; a wide box, narrow ones, a folded one, a wait and a message.
class FewLanes : public view::Lanes {
 public:
  const std::vector<view::LaneRow>& rows() const override { return rows_; }
  view::TimeWindow whole() const override { return {0, 1'000}; }
  std::vector<view::LaneBox> boxes(std::size_t row,
                                   const view::TimeWindow&,
                                   Nanoseconds) const override {
    return boxes_[row];
  }
  std::string label(std::size_t, const view::LaneBox& box) const override {
    return std::string(name_of(box.paint)) + " of layer 3";
  }
  view::DetailLines details(std::size_t, const view::LaneBox&) const override { return {}; }
  std::uint64_t name_key(std::size_t, std::uint32_t item) const override { return item; }
  view::LaneBox find(std::size_t, std::uint32_t) const override { return {.count = 0}; }

 private:
  std::vector<view::LaneRow> rows_{{"rank 0", "compute", 0}, {"rank 0", "dp", 0}};
  std::vector<std::vector<view::LaneBox>> boxes_{
      {{0, 300, 300, view::Paint::kForward, 0, 1},
       {300, 330, 30, view::Paint::kBackward, 1, 1},
       {330, 360, 30, view::Paint::kBackwardWeight, 2, 1},
       {400, 700, 180, view::Paint::kBackward, view::kNoItem, 12},
       {800, 1'000, 200, view::Paint::kOptimizer, 3, 1}},
      {{330, 480, 150, view::Paint::kWaiting, 0, 1},
       {480, 780, 300, view::Paint::kTransfer, 0, 1}}};
};

void buckets() {
  const std::vector<view::Paint> paints{
      view::Paint::kBackward, view::Paint::kTransfer, view::Paint::kWaiting};
  for (std::size_t i = 0; i < paints.size(); ++i) {
    const float left = 8 + 100 * static_cast<float>(i);
    const ui::Rect vessel{ImVec2(left, 8), ImVec2(left + 92, 72)};
    list().AddRect(vessel.min, vessel.max, ui::theme().border);
    const float level = 30 + 12 * static_cast<float>(i);
    const ui::Rect filled{ImVec2(left, vessel.max.y - level), vessel.max};
    const ui::Look& look = ui::theme().look(paints[i]);
    ui::box(list(), filled, look, vessel);
    ui::label(list(), filled, look, "layers.11.mlp.down.weight");
    ui::centred(list(),
                {ImVec2(left, 76), ImVec2(left + 92, 92)},
                {ui::theme().panel, ui::theme().text, ui::Hatch::kNone, false},
                std::to_string(25 * (i + 1)) + " MiB");
    ui::letter(list(),
               {ImVec2(left + 36, vessel.min.y + 2), ImVec2(left + 56, vessel.min.y + 18)},
               {ui::theme().panel, ui::theme().text, ui::Hatch::kNone, false},
               static_cast<char>('A' + i));
  }
}

void memory() {
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  const ui::Plot plot{{ImVec2(64, 8), ImVec2(312, 168)}, {0, 1'000}, 8 * kGib};
  ui::draw_byte_axis(list(), plot);
  const int columns = ui::columns_in(plot.body.width());
  std::vector<ui::Band> bands{{ui::theme().memory[0], 'P', "parameter", {}},
                              {ui::theme().memory[2], 'G', "gradient", {}},
                              {ui::theme().memory[4], 'A', "activation", {}}};
  for (int i = 0; i < columns; ++i) {
    bands[0].bytes.push_back(2 * kGib);
    bands[1].bytes.push_back(i < columns / 2 ? 0 : kGib);
    bands[2].bytes.push_back(4 * kGib * std::min(i, columns - i) / columns);
  }
  ui::draw_stack(list(), plot, bands);
  ui::draw_limit(list(), plot, 6 * kGib, "device 6 GiB");
  ui::draw_mark(list(), plot, 500, 5 * kGib, "peak 5 GiB");
}

}  // namespace

TEST_CASE("picture of all colours and hatches, dark") {
  check("palette_dark", picture(320, 200, ui::ThemeId::kDark, palette));
}

TEST_CASE("picture of all colours and hatches, light") {
  check("palette_light", picture(320, 200, ui::ThemeId::kLight, palette));
}

TEST_CASE("picture of two lanes") {
  const FewLanes lanes;
  views::LanesPane pane;
  const auto scene = [&] {
    pane.show(&lanes);
    views::LanesChoice choice;
    choice.area = view::TimeWindow{600, 800};
    choice.cursor = 250;
    pane.draw(choice, false);
  };
  check("lanes", picture(320, 180, ui::ThemeId::kDark, scene));
}

TEST_CASE("picture of three buckets") {
  check("buckets", picture(312, 100, ui::ThemeId::kLight, buckets));
}

TEST_CASE("picture of stacked memory") {
  check("memory", picture(320, 180, ui::ThemeId::kContrast, memory));
}
