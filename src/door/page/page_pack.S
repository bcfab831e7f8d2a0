/* The pack of the page, as it is: see page_pack.h. ATHANOR_PAGE_PACK is its path. */
    .section .rodata
    .global athanor_page_begin
    .global athanor_page_end
    .balign 16
athanor_page_begin:
    .incbin ATHANOR_PAGE_PACK
athanor_page_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
