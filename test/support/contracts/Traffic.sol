// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface ITransfers {
    function transfer(address to, uint256 value) external returns (bool);
}

/// Makes many transfers between strangers in one transaction. It must hold the tokens.
contract Traffic {
    function move(ITransfers token, uint256 count) external {
        for (uint256 index = 0; index < count; index++) token.transfer(address(uint160(0xabcd0000 + (index % 20))), 1);
    }
}
