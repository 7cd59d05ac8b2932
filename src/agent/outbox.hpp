#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace sandboxd::agent {

/// Something that has data frames to send, in turns.
class turn_source {
public:
    /// Appends at most one frame of data, or what comes after all data; returns whether there is more.
    [[nodiscard]] virtual bool take_turn(std::string& out) = 0;

protected:
    ~turn_source() = default;

private:
    friend class outbox;
    bool queued_ = false;
};

/// What goes out over a channel: control frames first, then the sources with data in turns. No I/O: front()
/// is what to write next, advance() what was written. Frames are never cut.
class outbox {
public:
    /// Control frames are appended here.
    [[nodiscard]] std::string& control() { return control_; }
    [[nodiscard]] std::size_t control_size() const { return control_.size(); }
    [[nodiscard]] bool empty() const {
        return position_ == ready_.size() && control_.empty() && turns_.empty();
    }

    /// `source` has something to send (again).
    void add(turn_source& source);
    /// `source` goes away, or may not send for now.
    void remove(turn_source& source);

    /// The next bytes to write, empty when there are none.
    [[nodiscard]] std::string_view front();
    void advance(std::size_t count);

    /// Forgets everything: the channel is gone.
    void clear();
    /// Gives memory back after a quiet time.
    void trim();

private:
    std::string control_;
    std::string ready_; ///< whole frames, of which position_ bytes are written
    std::size_t position_ = 0;
    std::deque<turn_source*> turns_;
};

} // namespace sandboxd::agent
