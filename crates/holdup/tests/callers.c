/* Two ways that need equally much stack: `far` is called by `way`, `near` by `main`, with the same instruction. Where the call of `far` left its return
 * address, `near` has room that it does not write. */
#include <time.h>

#define COMPUTE "	mov $400000, %ecx\n1:	dec %ecx\n	jnz 1b\n"
#define FUNCTION(name, room, whole, body) \
	"	.globl " name "\n	.type " name ",@function\n" name ":	.cfi_startproc\n" \
	"	subq $" room ", %rsp\n	.cfi_def_cfa_offset " whole "\n" body \
	"	addq $" room ", %rsp\n	.cfi_def_cfa_offset 8\n	ret\n	.cfi_endproc\n	.size " name ",.-" name "\n"

__asm__("	.text\n"
	FUNCTION("near", "0x48", "0x50", COMPUTE)
	FUNCTION("way", "0x18", "0x20", "	call far\n")
	FUNCTION("far", "0x28", "0x30", COMPUTE));

void near(void), way(void);
static void (*volatile const ways[])(void) = { way, near };

int main(void)
{
	time_t end = time(0) + 2;
	for (unsigned i = 0; time(0) < end; i++)
		ways[i & 1]();
	return 0;
}
