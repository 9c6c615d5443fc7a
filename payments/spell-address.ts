import { getAddress, isAddress } from "viem";

/** Returns an address in one spelling, because a wallet's spelling may differ between requests. */
export function spellAddress(address: string): string {
  return isAddress(address) ? getAddress(address) : address;
}

/** Returns an account (CAIP-10) with its address in one spelling. */
export function spellAccount(account: string): string {
  const start = account.lastIndexOf(":") + 1;
  return `${account.slice(0, start)}${spellAddress(account.slice(start))}`;
}
