"""Streams: the state of each stream that calls use, and launches in flight on it.

Stream handles of users come in; launches go out, in order, and can be waited for and stopped.

    stream_state   a stream with the memory that is its own
    stream_table   the streams in use, and how one is left
    owned_stream   a stream that tracegraph made
    timeline       launches of a stream: waiting for them, draining what they report
    in_flight      a launch with loops, until it is over
    stop_flag      the word in device memory that ends all loops
    exclusive_use  what one stream may use at a time: the print ring, WHILE nodes
    shutdown       the end of the process
"""
