/* Requests and answers on sockets: from when a request's bytes arrived, over when a thread read them, to the first byte that is sent
 * back on the same connection. Of streams whose other end made the connection. */
#ifndef HOLDUP_SOCKETS_H
#define HOLDUP_SOCKETS_H

#include "spans.h"

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define SOCK_SEQPACKET 5
#define ST_CLOSED 7
#define ST_LISTENS 10
#define MSG_PEEK 2

/* What spans of sockets have for a probe's number: names are made of ports and paths. */
#define PORT_ID 0xfffe
#define PATH_ID 0xfffd

/* System calls that read, by how they name the buffer. */
#define NR_READ 0
#define NR_READV 19
#define NR_RECVFROM 45
#define NR_RECVMSG 47

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	u16 skc_family;
	volatile unsigned char skc_state;
	u16 skc_num;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
};

struct sockaddr_un {
	u16 sun_family;
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
};

#pragma clang attribute pop

/* One that is served. */
struct connection {
	u64 arrived; /* when what has not been read began to; 0 for nothing */
	u64 began; /* when the request that is not answered yet did; 0 for none */
	u64 read; /* when that was */
	u32 tid; /* by whom */
	u32 counts; /* in span_counts */
	u16 port;
	u16 family;
	u32 unused;
	u64 path[TEXT_WORDS];
	u64 text[TEXT_WORDS];
};

/* By the address of the socket. User space makes room where they are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct connection);
} connections SEC(".maps");

/* What a connection begins with: too much for a program's stack. The second is for what may interrupt the first. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct connection);
} new_connections SEC(".maps");

/* On which somebody listens, or did. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u8);
} ports SEC(".maps");

INLINE u32 counts_of(u64 what)
{
	return MAX_PROBES + (u32)((what * 0x9e3779b97f4a7c15ULL) >> 58) % SOCKET_COUNTS;
}

/* A local socket that was accepted has the address of the one that listens; one that connects has none. */
INLINE bool is_served_path(struct sock *sk, struct connection *c)
{
	struct unix_address *address = 0;
	u16 type = sk->sk_type;
	read_field(address, ((struct unix_sock *)sk)->addr);
	if (!address || (type != SOCK_STREAM && type != SOCK_SEQPACKET))
		return 0;
	char *path = (char *)c->path;
	if (bpf_probe_read_kernel(path, sizeof(c->path), __builtin_preserve_access_index(&address->name[0].sun_path)))
		return 0;
	if (!path[0]) /* as an abstract name is written */
		path[0] = '@';
	c->counts = counts_of(c->path[0] ^ c->path[1] * 3 ^ c->path[2] * 5 ^ c->path[3] * 7);
	return 1;
}

INLINE bool is_served_port(struct sock *sk, struct connection *c)
{
	u32 port = sk->__sk_common.skc_num;
	u8 *is_listening = bpf_map_lookup_elem(&ports, &port);
	if (!is_listening || !*is_listening || sk->sk_type != SOCK_STREAM)
		return 0;
	c->port = port;
	c->counts = counts_of(port);
	return 1;
}

/* The connection of a socket, made if it is one that is served. */
INLINE struct connection *connection_of(struct sock *sk, u32 scratch)
{
	u64 key = (u64)sk;
	struct connection *c = bpf_map_lookup_elem(&connections, &key);
	if (c || sk->__sk_common.skc_state == ST_LISTENS)
		return c;
	c = bpf_map_lookup_elem(&new_connections, &scratch);
	if (!c)
		return 0;
	u16 family = sk->__sk_common.skc_family;
	c->family = family;
	c->port = 0;
	if (family == AF_UNIX ? !is_served_path(sk, c) : family != AF_INET && family != AF_INET6 ? 1 : !is_served_port(sk, c))
		return 0;
	bpf_map_update_elem(&connections, &key, c, 0);
	return bpf_map_lookup_elem(&connections, &key);
}

SEC("tp_btf/sk_data_ready")
int on_data_ready(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct ring *r = this_ring();
	if (!r)
		return 0;
	u64 t = bpf_ktime_get_ns();
	struct connection *c = connection_of(sk, 1);
	if (c && !c->arrived)
		c->arrived = t;
	timed(r, t);
	return 0;
}

/* Where a system call that reads was told to put it. */
INLINE u64 buffer_of(struct task_struct *task)
{
	struct pt_regs *regs = user_regs_of(task);
	u64 at, vector = 0, buffer = 0;
	if (!regs || (u16)regs->cs == COMPAT_CS)
		return 0;
	u64 call = regs->orig_ax;
	at = regs->si;
	if (call == NR_READ || call == NR_RECVFROM)
		return at;
	if (call == NR_READV)
		vector = at;
	else if (call != NR_RECVMSG || bpf_probe_read_user(&vector, 8, (void *)(at + 16)))
		return 0;
	return bpf_probe_read_user(&buffer, 8, (void *)vector) ? 0 : buffer;
}

INLINE void read_request(struct connection *c, struct task_struct *task, u64 bytes)
{
	u64 buffer = buffer_of(task);
	for (int i = 0; i < TEXT_WORDS; i++)
		c->text[i] = 0;
	if (bytes > sizeof(c->text))
		bytes = sizeof(c->text);
	if (!buffer || bpf_probe_read_user(c->text, bytes, (void *)buffer))
		c->text[0] = UNREAD;
}

INLINE void begin_request(struct ring *r, struct connection *c, struct task_struct *task, u64 bytes, u64 t)
{
	struct span_counts *counts;
	u32 at = c->counts;
	c->began = c->arrived && c->arrived < t ? c->arrived : t;
	c->read = t;
	c->tid = tid_of(r, task);
	if (cfg.sockets > 1)
		read_request(c, task, bytes);
	counts = bpf_map_lookup_elem(&span_counts, &at);
	if (counts)
		counts->begun++;
	r->spans++;
}

SEC("tp_btf/sock_recv_length")
int on_receive(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	s32 bytes = ctx[1];
	u64 key = (u64)sk;
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring *r = this_ring();
	if (!r || bytes < 0 || ((u32)ctx[2] & MSG_PEEK) || is_own(task))
		return 0;
	u64 t = bpf_ktime_get_ns();
	if (!bytes) { /* the other end has closed it */
		struct connection *c = bpf_map_lookup_elem(&connections, &key);
		if (c)
			c->arrived = 0;
		return 0;
	}
	struct connection *c = connection_of(sk, 0);
	if (!c)
		return 0;
	if (!c->began)
		begin_request(r, c, task, (u32)bytes, t);
	c->arrived = 0;
	timed(r, t);
	return 0;
}

INLINE void put_request(struct ring *r, struct connection *c, u32 tid, u64 t, u64 weight)
{
	u64 is_path = c->family == AF_UNIX, has_text = cfg.sockets > 1;
	u64 at, more = 2 + (is_path + has_text) * (TEXT_WORDS / 2), id = is_path ? PATH_ID : PORT_ID;
	if (!side_reserve(r, 1 + more, &at))
		return;
	r->span_records += 1 + more;
	side_put(r, at++, K_SPAN_WHOLE, t, (c->tid & TID_MASK) | id << BIT_SECOND | more << BIT_PARTS, t - c->began);
	side_put(r, at++, K_MORE, t, c->port | (u64)tid << BIT_PROCESS, c->read - c->began);
	if (is_path) {
		put_text(r, at, t, c->path);
		at += TEXT_WORDS / 2;
	}
	if (has_text) {
		put_text(r, at, t, c->text);
		at += TEXT_WORDS / 2;
	}
	side_put(r, at, K_MORE, t, weight, 0);
}

SEC("tp_btf/sock_send_length")
int on_send(u64 *ctx)
{
	u64 key = ctx[0];
	s32 bytes = ctx[1];
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring *r = this_ring();
	struct connection *c;
	if (!r || bytes <= 0 || is_own(task))
		return 0;
	u64 t = bpf_ktime_get_ns();
	c = bpf_map_lookup_elem(&connections, &key);
	if (!c || !c->began)
		return 0;
	u32 at = c->counts;
	struct span_counts *counts = bpf_map_lookup_elem(&span_counts, &at);
	if (counts) {
		counts->ended++;
		u64 weight = weight_of(counts, t - c->began, t);
		if (weight)
			put_request(r, c, tid_of(r, task), t, weight);
	}
	c->began = 0;
	r->span_ns += bpf_ktime_get_ns() - t;
	return 0;
}

/* Sockets of streams come and go. Addresses are used again. */
SEC("tp_btf/inet_sock_set_state")
int on_socket_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	u64 key = (u64)sk;
	u32 state = ctx[2], port = sk->__sk_common.skc_num;
	u8 one = 1;
	if (state == ST_LISTENS)
		bpf_map_update_elem(&ports, &port, &one, 0);
	else if (state == ST_CLOSED)
		bpf_map_delete_elem(&connections, &key);
	return 0;
}

#endif
