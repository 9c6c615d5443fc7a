import { sql } from "kysely";

/**
 * The index of the log in which a booked movement is on the chain now. `g` is the movement's ledger group, which names the place
 * where it was booked. After a reorg below the final height its transaction can be in another block, at other indexes. Movements of
 * one transaction with the same token, payer, receiver and amount keep their order. A movement that is nowhere keeps its place.
 */
export const currentLogIndex = sql<number | null>`coalesce((
  select here.log_index from observation gone join lateral (
    select n.log_index, row_number() over (order by n.log_index) as number from observation n
    where n.payer = gone.payer and n.transfer_id is null and n.dust_id is null
      and n.chain = gone.chain and n.tx_hash = gone.tx_hash and n.token = gone.token and n.receiver = gone.receiver
      and n.amount = gone.amount and not n.orphaned
  ) here on here.number = (
    select count(*) from observation equal
    where equal.chain = gone.chain and equal.block_id = gone.block_id and equal.tx_hash = gone.tx_hash
      and equal.token = gone.token and equal.payer = gone.payer and equal.receiver = gone.receiver
      and equal.amount = gone.amount and equal.transfer_id is null and equal.log_index <= gone.log_index)
  where gone.chain = g.chain and gone.block_id = g.block_id and gone.tx_hash = g.tx_hash
    and gone.log_index = g.log_index and gone.orphaned), g.log_index)`;
