// SPDX-License-Identifier: GPL-2.0
/*
 * sum WAY COUNT: computes the same sum 1000 times, by itself (user), by system call 548
 * (syscall) or by the module (module). It has no library, so that it fits into the
 * experiment file; see there for how it gets there.
 */
static long call(long number, long a, long b, long c)
{
	long result;

	asm volatile("syscall" : "=a"(result)
		     : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

enum { SYS_OPEN = 2, SYS_IOCTL = 16, SYS_EXIT = 60, SYS_LAB_SUM = 548 };

__attribute__((noinline)) static unsigned int sum_of(unsigned int count)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < count; i++) {
		sum = sum * 31 + i;
		/* The loop runs as it is written. */
		asm volatile("" : "+r"(sum));
	}
	return sum & 0x7fffffff;
}

__attribute__((used)) static void start(long *stack)
{
	char **arguments = (char **)(stack + 1);
	char way = stack[0] == 3 ? arguments[1][0] : 0;
	unsigned int count = 0;
	long device = 0;

	for (char *digit = way ? arguments[2] : ""; *digit; digit++)
		count = count * 10 + (*digit - '0');
	if (way == 'm')
		device = call(SYS_OPEN, (long)"/dev/lab_sum", 0, 0);
	for (int turn = 0; turn < 1000; turn++) {
		long sum = way == 'u' ? sum_of(count) :
			   way == 's' ? call(SYS_LAB_SUM, count, 0, 0) :
			   way == 'm' ? call(SYS_IOCTL, device, 0, count) : -1;

		if (sum != sum_of(count) && turn == 0)
			call(SYS_EXIT, 1, 0, 0);
	}
	call(SYS_EXIT, 0, 0, 0);
}

asm(".globl _start\n_start: mov %rsp, %rdi\ncall start\n");
