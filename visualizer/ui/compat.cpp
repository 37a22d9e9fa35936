#include "visualizer/ui/compat.h"

#include <algorithm>
#include <string>

#include <imgui_internal.h>

namespace lockstep::ui {
namespace {

#if IMGUI_VERSION_NUM >= 18700

ImGuiKey native(Key key) {
  const int code = static_cast<int>(key);
  if (key >= Key::kA && key <= Key::kZ) {
    return static_cast<ImGuiKey>(ImGuiKey_A + (code - static_cast<int>(Key::kA)));
  }
  if (key >= Key::kDigit0 && key <= Key::kDigit9) {
    return static_cast<ImGuiKey>(ImGuiKey_0 + (code - static_cast<int>(Key::kDigit0)));
  }
  switch (key) {
    case Key::kSpace:
      return ImGuiKey_Space;
    case Key::kEscape:
      return ImGuiKey_Escape;
    case Key::kEnter:
      return ImGuiKey_Enter;
    case Key::kTab:
      return ImGuiKey_Tab;
    case Key::kBackspace:
      return ImGuiKey_Backspace;
    case Key::kInsert:
      return ImGuiKey_Insert;
    case Key::kDelete:
      return ImGuiKey_Delete;
    case Key::kRight:
      return ImGuiKey_RightArrow;
    case Key::kLeft:
      return ImGuiKey_LeftArrow;
    case Key::kDown:
      return ImGuiKey_DownArrow;
    case Key::kUp:
      return ImGuiKey_UpArrow;
    case Key::kPageUp:
      return ImGuiKey_PageUp;
    case Key::kPageDown:
      return ImGuiKey_PageDown;
    case Key::kHome:
      return ImGuiKey_Home;
    case Key::kEnd:
      return ImGuiKey_End;
    case Key::kF1:
      return ImGuiKey_F1;
    case Key::kF6:
      return ImGuiKey_F6;
    case Key::kKeypadEnter:
      return ImGuiKey_KeypadEnter;
    default:
      return ImGuiKey_None;
  }
}

#else

int native(Key key) {
  return static_cast<int>(key);
}

#endif

}  // namespace

Key digit_key(int digit) {
  return static_cast<Key>(static_cast<int>(Key::kDigit0) + digit);
}

bool pressed(Key key, bool repeat) {
  return ImGui::IsKeyPressed(native(key), repeat);
}

bool held(Key key) {
  return ImGui::IsKeyDown(native(key));
}

int modifiers_held() {
  const ImGuiIO& io = ImGui::GetIO();
  return (io.KeyCtrl ? kControl : kPlain) | (io.KeyShift ? kShift : kPlain) |
         (io.KeyAlt ? kAlt : kPlain);
}

bool chord(Key key, int modifiers, bool repeat) {
  return modifiers_held() == modifiers && pressed(key, repeat);
}

bool text_is_edited() {
  return ImGui::GetIO().WantTextInput;
}

bool typed(char32_t character) {
  if (text_is_edited()) {
    return false;
  }
  const ImVector<ImWchar>& queue = ImGui::GetIO().InputQueueCharacters;
  return std::find(queue.begin(), queue.end(), static_cast<ImWchar>(character)) != queue.end();
}

#if IMGUI_VERSION_NUM >= 18700

void map_keys(ImGuiIO&) {}

void feed_key(ImGuiIO& io, Key key, bool down) {
  io.AddKeyEvent(native(key), down);
}

void feed_modifiers(ImGuiIO& io, int modifiers) {
  io.AddKeyEvent(ImGuiMod_Ctrl, (modifiers & kControl) != 0);
  io.AddKeyEvent(ImGuiMod_Shift, (modifiers & kShift) != 0);
  io.AddKeyEvent(ImGuiMod_Alt, (modifiers & kAlt) != 0);
}

void feed_mouse(ImGuiIO& io, const ImVec2& position) {
  io.AddMousePosEvent(position.x, position.y);
}

void feed_button(ImGuiIO& io, int button, bool down) {
  io.AddMouseButtonEvent(button, down);
}

void feed_wheel(ImGuiIO& io, float lines) {
  io.AddMouseWheelEvent(0, lines);
}

#else

void map_keys(ImGuiIO& io) {
  const auto map = [&](ImGuiKey to, Key key) { io.KeyMap[to] = static_cast<int>(key); };
  map(ImGuiKey_Tab, Key::kTab);
  map(ImGuiKey_LeftArrow, Key::kLeft);
  map(ImGuiKey_RightArrow, Key::kRight);
  map(ImGuiKey_UpArrow, Key::kUp);
  map(ImGuiKey_DownArrow, Key::kDown);
  map(ImGuiKey_PageUp, Key::kPageUp);
  map(ImGuiKey_PageDown, Key::kPageDown);
  map(ImGuiKey_Home, Key::kHome);
  map(ImGuiKey_End, Key::kEnd);
  map(ImGuiKey_Insert, Key::kInsert);
  map(ImGuiKey_Delete, Key::kDelete);
  map(ImGuiKey_Backspace, Key::kBackspace);
  map(ImGuiKey_Space, Key::kSpace);
  map(ImGuiKey_Enter, Key::kEnter);
  map(ImGuiKey_Escape, Key::kEscape);
  map(ImGuiKey_KeyPadEnter, Key::kKeypadEnter);
  map(ImGuiKey_A, Key::kA);
  map(ImGuiKey_C, Key::kC);
  map(ImGuiKey_V, Key::kV);
  map(ImGuiKey_X, Key::kX);
  map(ImGuiKey_Y, Key::kY);
  map(ImGuiKey_Z, Key::kZ);
}

void feed_key(ImGuiIO& io, Key key, bool down) {
  io.KeysDown[native(key)] = down;
}

void feed_modifiers(ImGuiIO& io, int modifiers) {
  io.KeyCtrl = (modifiers & kControl) != 0;
  io.KeyShift = (modifiers & kShift) != 0;
  io.KeyAlt = (modifiers & kAlt) != 0;
}

void feed_mouse(ImGuiIO& io, const ImVec2& position) {
  io.MousePos = position;
}

void feed_button(ImGuiIO& io, int button, bool down) {
  io.MouseDown[button] = down;
}

void feed_wheel(ImGuiIO& io, float lines) {
  io.MouseWheel += lines;
}

#endif

void feed_text(ImGuiIO& io, std::string_view text) {
  io.AddInputCharactersUTF8(std::string(text).c_str());
}

void focus_next_item() {
  ImGui::SetKeyboardFocusHere();
}

const char* focused_window() {
  const ImGuiWindow* window = ImGui::GetCurrentContext()->NavWindow;
  return window == nullptr ? "" : window->RootWindow->Name;
}

ImGuiID focused_item() {
  const ImGuiContext& context = *ImGui::GetCurrentContext();
  return ImGui::GetIO().NavVisible ? context.NavId : 0;
}

ImGuiID last_item() {
  return ImGui::GetCurrentContext()->LastItemData.ID;
}

void begin_list(const char* id) {
#if IMGUI_VERSION_NUM >= 19090
  ImGui::BeginChild(id, ImVec2(0, 0), ImGuiChildFlags_NavFlattened);
#else
  ImGui::BeginChild(id, ImVec2(0, 0), false, ImGuiWindowFlags_NavFlattened);
#endif
}

std::pair<ImVec2, ImVec2> window_seen() {
  const ImRect& rect = ImGui::GetCurrentContext()->CurrentWindow->OuterRectClipped;
  return {rect.Min, rect.Max};
}

std::pair<bool, bool> scrolls() {
  std::pair<bool, bool> result;
  const ImGuiWindow* window = ImGui::GetCurrentContext()->CurrentWindow;
  for (; window != nullptr; window = window->ParentWindow) {
    constexpr ImGuiWindowFlags kFixed =
        ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;
    if ((window->Flags & kFixed) != kFixed) {
      result.first = result.first || window->ScrollMax.x > 0;
      result.second = result.second || window->ScrollMax.y > 0;
    }
    if ((window->Flags & ImGuiWindowFlags_ChildWindow) == 0) {
      break;
    }
  }
  return result;
}

void focus_first_item() {
  ImGuiContext& context = *ImGui::GetCurrentContext();
  ImGui::NavInitWindow(context.CurrentWindow, true);
  context.NavInitRequestFromMove = true;  // shows the ring
}

}  // namespace lockstep::ui
