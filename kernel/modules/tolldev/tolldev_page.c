// SPDX-License-Identifier: GPL-2.0
/* Looks up the page-table entry of an address of the caller. */
#include <linux/capability.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/pgtable.h>
#include <linux/sched.h>

#include "tolldev_page.h"

/* An entry as read, the bits of its frame number, and the bytes it maps. */
struct tolldev_entry {
	u64 value;
	u64 frame_mask;
	u64 bytes;
};

/*
 * Each level is read once, as get_user_pages_fast() does: others may change
 * any of them meanwhile.
 */
static struct tolldev_entry tolldev_page_walk(struct mm_struct *mm,
					      unsigned long address)
{
	const struct tolldev_entry nothing = { 0 };
	pgd_t pgd = READ_ONCE(*pgd_offset(mm, address));
	p4d_t p4d;
	pud_t pud;
	pmd_t pmd;
	pte_t pte;

	if (pgd_none(pgd) || pgd_bad(pgd))
		return nothing;
	p4d = READ_ONCE(*p4d_offset(&pgd, address));
	if (p4d_none(p4d) || p4d_bad(p4d))
		return nothing;
	pud = READ_ONCE(*pud_offset(&p4d, address));
	if (!(pud_flags(pud) & _PAGE_PRESENT))
		return nothing;
	if (pud_leaf(pud))
		return (struct tolldev_entry){ pud_val(pud), pud_pfn_mask(pud),
					      PUD_SIZE };
	pmd = READ_ONCE(*pmd_offset(&pud, address));
	if (!(pmd_flags(pmd) & _PAGE_PRESENT))
		return nothing;
	if (pmd_leaf(pmd))
		return (struct tolldev_entry){ pmd_val(pmd), pmd_pfn_mask(pmd),
					      PMD_SIZE };
	pte = READ_ONCE(*pte_offset_kernel(&pmd, address));
	/*
	 * An entry that is not present holds the page's position in swap, or
	 * with PROT_NONE the inverted frame number.
	 */
	if (!(pte_flags(pte) & _PAGE_PRESENT))
		return nothing;
	return (struct tolldev_entry){ pte_val(pte), PTE_PFN_MASK, PAGE_SIZE };
}

/**
 * tolldev_page_look_up() - Fill in the page-table entry of an address
 * @page: entry and page_bytes are set from address.
 *
 * Return: 0, -EINVAL for reserved fields that are set, or -EINTR if the caller
 * is being killed.
 */
int tolldev_page_look_up(struct toll_device_page *page)
{
	struct tolldev_entry entry = { 0 };
	struct mm_struct *mm = current->mm;
	unsigned long flags;

	if (page->reserved)
		return -EINVAL;
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	/*
	 * munmap() may free page tables while others hold mmap_lock for
	 * reading, but not those below a mapping. A table that a huge page
	 * replaces is freed only after all CPUs have had interrupts on.
	 */
	if (page->address < TASK_SIZE_MAX && vma_lookup(mm, page->address)) {
		local_irq_save(flags);
		entry = tolldev_page_walk(mm, page->address);
		local_irq_restore(flags);
	}
	mmap_read_unlock(mm);

	/* Physical addresses help attacks such as row hammer. */
	if (!capable(CAP_SYS_ADMIN))
		entry.value &= ~entry.frame_mask;
	page->entry = entry.value;
	page->page_bytes = entry.bytes;
	return 0;
}
