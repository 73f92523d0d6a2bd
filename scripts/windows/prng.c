/* Stands in for bcryptprimitives.dll under a Wine that has none (before Wine 9): Rust's standard library asks it for random
 * numbers, and without it no program starts. RtlGenRandom, which Wine has, is exported by advapi32 as SystemFunction036. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
    while (length > 0) {
        ULONG part = length < 0x1000000 ? (ULONG)length : 0x1000000;
        if (!SystemFunction036(data, part))
            return FALSE;
        data += part;
        length -= part;
    }
    return TRUE;
}
