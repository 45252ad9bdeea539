// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A plugin for QEMU's translator (TCG) that counts the instructions of a guest
 * by translated block. `toll` counts nothing else: see docs/METHODOLOGY.md.
 *
 * A mark in the guest, an instruction that does nothing, resets all counters,
 * and another one appends what was counted since then to a file. QEMU must
 * run a single virtual CPU, since its inline additions are not atomic.
 *
 * Each instruction adds to the counter of its block before it runs. So an
 * instruction that faults is counted each time that it begins, and those after
 * it in the block are not.
 *
 * The guest decides how many blocks there are, and how often it counts. Both
 * have limits; if a guest exceeds one, QEMU exits with a message.
 *
 * Debian's QEMU comes without a header, so the used part of its interface is
 * declared here (include/qemu/qemu-plugin.h of QEMU). QEMU up to 8.2 adds to
 * any place in memory, from 9.0 on only to a scoreboard.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EXPORT __attribute__((visibility("default")))
#define WEAK __attribute__((weak))

typedef uint64_t qemu_plugin_id_t;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;

struct scoreboard_place {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
};

enum { INLINE_ADD_U64 = 0, CALLBACK_NO_REGISTERS = 0 };

typedef void (*translated_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*executed_fn)(unsigned int cpu, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   translated_fn translated);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    executed_fn executed, int flags,
					    void *data);
/* Up to QEMU 8.2. */
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block,
					      int operation, void *place,
					      uint64_t operand) WEAK;
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						int operation, void *place,
						uint64_t operand) WEAK;
/* From QEMU 9.0 on. */
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t bytes) WEAK;
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score,
				  unsigned int cpu) WEAK;
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
	struct qemu_plugin_tb *block, int operation,
	struct scoreboard_place place, uint64_t operand) WEAK;
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
	struct qemu_plugin_insn *insn, int operation,
	struct scoreboard_place place, uint64_t operand) WEAK;

EXPORT int qemu_plugin_version = 1;

#define PAGE_BYTES 4096

/* The marks: `nopl MARK(%rax)`, as in crates/probe/src/count_mark.rs. */
static const uint8_t MARK_BEGIN[] = { 0x0f, 0x1f, 0x80, 'T', 'O', 'L', 'b' };
static const uint8_t MARK_END[] = { 0x0f, 0x1f, 0x80, 'T', 'O', 'L', 'e' };

/* The file's content, little-endian: a head, then this many entries. */
struct record_head {
	char magic[8];
	uint64_t entries;
};

struct record_entry {
	uint64_t address;
	uint64_t page;
	uint64_t executions;
	uint64_t instructions;
};

struct counters {
	uint64_t executions;
	uint64_t instructions;
};

/* A block: its address, and in a program the identity of its page. */
struct block {
	uint64_t address;
	uint64_t page;
};

#define CHUNK_BLOCKS 4096
/* 4 million blocks: 128 MiB, and as much again for their counters and table. */
#define CHUNKS_MAX 1024

/* Blocks with their counters, which QEMU's code points to: neither moves. */
struct chunk {
	struct block blocks[CHUNK_BLOCKS];
	struct qemu_plugin_scoreboard *score;
	struct counters *counters;
};

static struct chunk *chunks[CHUNKS_MAX];
static uint32_t blocks_used;
/* Block numbers plus one, by a hash of the block; a power of two long. */
static uint32_t *table;
static uint32_t table_length;
static FILE *output;
/* Maximum size of the file, which its reader empties. */
static uint64_t output_bytes_max;
static bool is_counting;

static void fail(const char *what)
{
	fprintf(stderr, "count_blocks: %s\n", what);
	exit(EXIT_FAILURE);
}

static void *allocate(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		fail("out of memory");
	return memory;
}

/* QEMU reads the version once the plugin is loaded. */
__attribute__((constructor)) static void choose_version(void)
{
	if (qemu_plugin_scoreboard_new)
		qemu_plugin_version = 2;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ (hash >> 32);
}

static struct block *block_of(uint32_t number)
{
	return &chunks[number / CHUNK_BLOCKS]->blocks[number % CHUNK_BLOCKS];
}

static struct counters *counters_of(uint32_t number)
{
	struct chunk *chunk = chunks[number / CHUNK_BLOCKS];
	struct counters *all = chunk->counters;

	if (chunk->score)
		all = qemu_plugin_scoreboard_find(chunk->score, 0);
	return &all[number % CHUNK_BLOCKS];
}

static uint32_t *slot_of(uint64_t address, uint64_t page)
{
	uint32_t index = (uint32_t)mix(mix(0, address), page);

	for (;; index++) {
		uint32_t *slot = &table[index & (table_length - 1)];
		const struct block *block;

		if (!*slot)
			return slot;
		block = block_of(*slot - 1);
		if (block->address == address && block->page == page)
			return slot;
	}
}

static void grow_table(void)
{
	free(table);
	table_length = table_length ? 2 * table_length : 1 << 16;
	table = allocate(table_length * sizeof(*table));
	for (uint32_t number = 0; number < blocks_used; number++) {
		const struct block *block = block_of(number);

		*slot_of(block->address, block->page) = number + 1;
	}
}

static void add_chunk(void)
{
	uint32_t index = blocks_used / CHUNK_BLOCKS;
	size_t bytes = CHUNK_BLOCKS * sizeof(struct counters);

	if (index == CHUNKS_MAX)
		fail("the guest executed more than 4 million blocks");
	chunks[index] = allocate(sizeof(struct chunk));
	if (qemu_plugin_scoreboard_new)
		chunks[index]->score = qemu_plugin_scoreboard_new(bytes);
	else
		chunks[index]->counters = allocate(bytes);
}

/* The number of a block, which an earlier translation may have assigned. */
static uint32_t number_of(uint64_t address, uint64_t page)
{
	uint32_t *slot;

	if (2 * blocks_used >= table_length)
		grow_table();
	slot = slot_of(address, page);
	if (!*slot) {
		if (blocks_used % CHUNK_BLOCKS == 0)
			add_chunk();
		*block_of(blocks_used) = (struct block){ address, page };
		*slot = ++blocks_used;
	}
	return *slot - 1;
}

static bool is_kernel(uint64_t address)
{
	return address >> 63;
}

/* Identifies the content of a program's page: `page_identity` of `toll`
 * computes the same for pages of files.
 */
static uint64_t identity(const uint8_t *page)
{
	uint64_t hash = 0;

	for (size_t at = 0; at < PAGE_BYTES; at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, page + at, sizeof(word));
		hash = mix(hash, word);
	}
	return hash;
}

static void begin(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	for (uint32_t number = 0; number < blocks_used; number++)
		*counters_of(number) = (struct counters){ 0 };
	is_counting = true;
}

static void end(unsigned int cpu, void *data)
{
	struct record_head head = { { 'T', 'O', 'L', 'L', 'C', 'N', 'T', '1' }, 0 };
	struct stat file;

	(void)cpu;
	(void)data;
	if (!is_counting)
		return;
	is_counting = false;
	for (uint32_t number = 0; number < blocks_used; number++)
		head.entries += counters_of(number)->instructions != 0;
	if (fstat(fileno(output), &file))
		fail("cannot look at the file of counts");
	if (file.st_size + sizeof(head) +
		    head.entries * sizeof(struct record_entry) > output_bytes_max)
		fail("the guest counted more regions than the file may hold");
	fwrite(&head, sizeof(head), 1, output);
	for (uint32_t number = 0; number < blocks_used; number++) {
		const struct block *block = block_of(number);
		const struct counters *counters = counters_of(number);
		struct record_entry entry = { block->address, block->page,
					      counters->executions,
					      counters->instructions };

		if (entry.instructions)
			fwrite(&entry, sizeof(entry), 1, output);
	}
	if (fflush(output) || ferror(output))
		fail("cannot write the counts");
}

/* A mark is within one page (it is aligned), and so are its bytes. */
static void look_for_mark(struct qemu_plugin_insn *insn)
{
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	const uint8_t *bytes = qemu_plugin_insn_haddr(insn);

	if (!bytes || qemu_plugin_insn_size(insn) != sizeof(MARK_BEGIN) ||
	    address % PAGE_BYTES + sizeof(MARK_BEGIN) > PAGE_BYTES)
		return;
	if (!memcmp(bytes, MARK_BEGIN, sizeof(MARK_BEGIN)))
		qemu_plugin_register_vcpu_insn_exec_cb(
			insn, begin, CALLBACK_NO_REGISTERS, NULL);
	else if (!memcmp(bytes, MARK_END, sizeof(MARK_END)))
		qemu_plugin_register_vcpu_insn_exec_cb(
			insn, end, CALLBACK_NO_REGISTERS, NULL);
}

/* Makes a block, or an instruction if one is given, add to a counter. */
static void add(struct qemu_plugin_tb *block, struct qemu_plugin_insn *insn,
		uint32_t number, size_t member)
{
	struct chunk *chunk = chunks[number / CHUNK_BLOCKS];
	size_t offset = number % CHUNK_BLOCKS * sizeof(struct counters) + member;
	struct scoreboard_place place = { chunk->score, offset };
	void *memory = (uint8_t *)chunk->counters + offset;

	if (chunk->score && insn)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, INLINE_ADD_U64, place, 1);
	else if (chunk->score)
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
			block, INLINE_ADD_U64, place, 1);
	else if (insn)
		qemu_plugin_register_vcpu_insn_exec_inline(
			insn, INLINE_ADD_U64, memory, 1);
	else
		qemu_plugin_register_vcpu_tb_exec_inline(block, INLINE_ADD_U64,
							 memory, 1);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	uint64_t address = qemu_plugin_tb_vaddr(block);
	const uint8_t *first =
		qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(block, 0));
	size_t count = qemu_plugin_tb_n_insns(block);
	uint64_t page = 0;
	uint32_t number;

	(void)id;
	if (!is_kernel(address) && first)
		page = identity(first - address % PAGE_BYTES);
	number = number_of(address, page);
	add(block, NULL, number, offsetof(struct counters, executions));
	for (size_t index = 0; index < count; index++) {
		struct qemu_plugin_insn *insn =
			qemu_plugin_tb_get_insn(block, index);

		add(block, insn, number, offsetof(struct counters, instructions));
		if (!is_kernel(address))
			look_for_mark(insn);
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			       int argc, char **argv)
{
	(void)info;
	if (argc != 2 || strncmp(argv[0], "out=", 4) ||
	    strncmp(argv[1], "limit=", 6)) {
		fprintf(stderr, "count_blocks: expected out=FILE,limit=BYTES\n");
		return -1;
	}
	output_bytes_max = strtoull(argv[1] + 6, NULL, 10);
	output = fopen(argv[0] + 4, "ab");
	if (!output) {
		perror("count_blocks: cannot open the file");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
