/** What `signer --help` prints. */
export const usage = `signer [command]

  serve               serves payouts to workers (default)
  init                creates the store of a new deployment
  rebuild             rebuilds a store that was lost from the chains, and retires its treasuries (docs/keys.md)
    --former <chain>=<address>|none   each treasury that the chain had before the present one, or that there was none;
                                      required for each chain. Use your own records only: deposits and rows may lie
    --from <chain>=<block>            a block before the first transfer of any of the treasuries; 0 by default
    --accept <transaction>/<index>    a transfer out of a treasury that belongs to no payout, and that you know
    --leave <asset>=<amount>          what may stay in each treasury, minor units: lost signatures can take it
  withdraw <file>     signs a withdrawal that two operators have approved (admin payouts approve-withdrawal). Prints
                      the call that makes it; on Solana it sends the transaction, and the treasury needs 0.005 SOL. Safe to repeat
  decide <file>       reads signed statements about destinations and approval keys
  waiting             lists the destinations and approval keys that wait
  audit list          prints the signer's audit log
  audit verify        finds entries and records that were changed or removed
    --heads <file>                    also compares the log with heads that were exported to this file

Reads NETWORKS_FILE, SIGNER_STORE, SIGNER_LIMITS_FILE, SIGNER_LISTEN and AUDIT_SINK. Options of rebuild may be repeated.`;
