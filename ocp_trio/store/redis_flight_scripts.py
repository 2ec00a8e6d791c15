"""What instances that share flights do to their leases, each in one step.

The first keys of all are those of a place where instances meet: the lease, which holds its leader's token, and the
set of followers, tokens by the time in milliseconds at which they count as dead. Redis' own clock is the only one.
"""

from ocp_trio.store.redis_link import RedisScript

__all__ = ["CLOSE", "FOLLOW", "JOIN", "LEAD"]

JOIN = RedisScript(
    script="""
local lease, followers = KEYS[1], KEYS[2]
if redis.call('GET', lease) == ARGV[3] then redis.call('DEL', lease) end
redis.call('SET', lease, ARGV[1], 'NX', 'PX', ARGV[2])
local leader = redis.call('GET', lease)
if leader ~= ARGV[1] then
    local now = redis.call('TIME')
    redis.call('ZADD', followers, now[1] * 1000 + ARGV[2], ARGV[1])
    redis.call('PEXPIRE', followers, ARGV[2] * 2)
end
return leader
"""
)
"""Take the lease, or register as a follower of the instance that holds it, whose token is returned. A lease of this
instance whose flight has just finished is given up."""
LEAD = RedisScript(
    script="""
local lease, followers, stream = KEYS[1], KEYS[2], KEYS[3]
local leader = redis.call('GET', lease)
if leader and leader ~= ARGV[1] then return -1 end
redis.call('SET', lease, ARGV[1], 'PX', ARGV[2])
if ARGV[4] ~= '' then redis.call('XADD', stream, '*', 'b', ARGV[4]) end
redis.call('EXPIRE', stream, ARGV[3])
local now = redis.call('TIME')
redis.call('ZREMRANGEBYSCORE', followers, '-inf', now[1] * 1000)
return redis.call('ZCARD', followers)
"""
)
"""Renew a lease and append batches; return how many instances follow, -1 where another one leads by now."""
CLOSE = RedisScript(
    script="""
local lease, stream = KEYS[1], KEYS[3]
redis.call('XADD', stream, '*', 'b', ARGV[3], 'e', ARGV[4])
redis.call('EXPIRE', stream, ARGV[2])
if redis.call('GET', lease) == ARGV[1] then redis.call('DEL', lease) end
"""
)
"""Append the last batches and say how the flight ended; give up the lease."""
FOLLOW = RedisScript(
    script="""
local lease, followers = KEYS[1], KEYS[2]
local now = redis.call('TIME')
redis.call('ZADD', followers, now[1] * 1000 + ARGV[3], ARGV[2])
redis.call('PEXPIRE', followers, ARGV[3] * 2)
return redis.call('GET', lease) == ARGV[1]
"""
)
"""Register as a follower for the length of a lease; return whether the leader still holds its own."""
