// The only file that includes Asio. Boost 1.74's awaitable.hpp uses std::exchange
// without including <utility>, so that comes first.
#pragma once

// clang-format off
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
// clang-format on
