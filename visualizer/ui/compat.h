// Compat: the one place that knows what Dear ImGui 1.86 (Debian 12) does otherwise than newer ones.
// Before 1.87 keys are native codes, and input is written into ImGuiIO instead of queued.
//
//     if (chord(Key::kZ, kControl)) undo();
//     if (typed('?')) show_keys();       // a character, wherever it lies on the keyboard
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <imgui.h>

namespace lockstep::ui {

/// Values are GLFW's codes, which 1.86 takes as they are. Letters and digits are their ASCII codes.
enum class Key : int {
  kSpace = 32,
  kA = 65,
  kC = 67,
  kD = 68,
  kE = 69,
  kF = 70,
  kK = 75,
  kM = 77,
  kO = 79,
  kP = 80,
  kS = 83,
  kT = 84,
  kW = 87,
  kV = 86,
  kX = 88,
  kY = 89,
  kZ = 90,
  kDigit0 = 48,
  kDigit1 = 49,
  kDigit9 = 57,
  kEscape = 256,
  kEnter = 257,
  kTab = 258,
  kBackspace = 259,
  kInsert = 260,
  kDelete = 261,
  kRight = 262,
  kLeft = 263,
  kDown = 264,
  kUp = 265,
  kPageUp = 266,
  kPageDown = 267,
  kHome = 268,
  kEnd = 269,
  kF1 = 290,
  kF6 = 295,
  kKeypadEnter = 335,
};

enum Modifier : std::uint8_t { kPlain = 0, kControl = 1, kShift = 2, kAlt = 4 };

/// `digit` 0 to 9.
Key digit_key(int digit);

/// Went down in this frame, or repeats.
bool pressed(Key key, bool repeat = true);
bool held(Key key);
/// Went down with exactly these modifiers.
bool chord(Key key, int modifiers, bool repeat = false);
/// The character was typed in this frame while no text is edited.
bool typed(char32_t character);
/// A text box has the keyboard.
bool text_is_edited();
int modifiers_held();

// Input for those who have no window: call between frames.
void map_keys(ImGuiIO& io);
void feed_key(ImGuiIO& io, Key key, bool down);
void feed_modifiers(ImGuiIO& io, int modifiers);
void feed_mouse(ImGuiIO& io, const ImVec2& position);
void feed_button(ImGuiIO& io, int button, bool down);
void feed_wheel(ImGuiIO& io, float lines);
void feed_text(ImGuiIO& io, std::string_view text);

/// Gives the next item the keyboard focus of its window, with the focus ring shown.
void focus_next_item();
/// Name of the window that has the focus, or "".
const char* focused_window();
/// The item with the keyboard's focus; 0: none, or it is not shown.
ImGuiID focused_item();
/// The item that was drawn last; 0 for text.
ImGuiID last_item();
/// A child that fills the rest, into which arrows lead as if it were no window of its own.
void begin_list(const char* id);
/// What can be seen of the current window.
std::pair<ImVec2, ImVec2> window_seen();
/// Whether the current window, or one that it lies in, can be scrolled sideways, and up and down.
std::pair<bool, bool> scrolls();
/// The first item of the current window gets the keyboard's focus, with the ring shown.
void focus_first_item();

}  // namespace lockstep::ui
