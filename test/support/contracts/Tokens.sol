// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// An honest token with EIP-2612.
contract PermitToken {
    string public name = "Permit Token";
    string public symbol = "PRMT";
    string public constant version = "1";
    uint8 public constant decimals = 6;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => uint256) public nonces;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function approve(address spender, uint256 value) external virtual returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external virtual returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external virtual returns (bool) {
        if (allowance[from][msg.sender] != type(uint256).max) allowance[from][msg.sender] -= value;
        move(from, to, value);
        return true;
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256(bytes(name)),
                keccak256(bytes(version)),
                block.chainid,
                address(this)
            )
        );
    }

    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
    {
        require(block.timestamp <= deadline, "expired");
        bytes32 kind = keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        bytes32 struct_ = keccak256(abi.encode(kind, owner, spender, value, nonces[owner]++, deadline));
        address signer = ecrecover(keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), struct_)), v, r, s);
        require(signer != address(0) && signer == owner, "not signed by the owner");
        allowance[owner][spender] = value;
        emit Approval(owner, spender, value);
    }

    function move(address from, address to, uint256 value) internal virtual {
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}

/// Like USDT on Ethereum: an allowance can only be changed from or to zero, and functions return nothing.
contract ZeroFirstToken {
    string public constant name = "Zero First";
    string public constant symbol = "ZRF";
    uint8 public constant decimals = 6;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
    }

    function approve(address spender, uint256 value) external {
        require(value == 0 || allowance[msg.sender][spender] == 0);
        allowance[msg.sender][spender] = value;
    }

    function transferFrom(address from, address to, uint256 value) external {
        if (allowance[from][msg.sender] != type(uint256).max) allowance[from][msg.sender] -= value;
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}

/// A token whose issuer can charge a fee on every transfer and pause all transfers, as USDT's issuer can.
contract IssuerToken is PermitToken {
    uint256 public feePoints;
    bool public paused;

    function setFee(uint256 points) external {
        feePoints = points;
    }

    function setPaused(bool on) external {
        paused = on;
    }

    function move(address from, address to, uint256 value) internal override {
        require(!paused, "Pausable: paused");
        uint256 fee = (value * feePoints) / 10_000;
        if (fee > 0) super.move(from, address(this), fee);
        super.move(from, to, value - fee);
    }
}

/// Keeps one percent of every transfer.
contract FeeToken is PermitToken {
    function move(address from, address to, uint256 value) internal override {
        uint256 fee = value / 100;
        super.move(from, address(this), fee);
        super.move(from, to, value - fee);
    }
}

/// Like USDT on Ethereum: its owner can set a fee on every transfer, in basis points.
contract FeeSwitchToken is PermitToken {
    uint256 public fee;

    function setFee(uint256 points) external {
        fee = points;
    }

    function move(address from, address to, uint256 value) internal override {
        uint256 kept = (value * fee) / 10_000;
        if (kept > 0) super.move(from, address(this), kept);
        super.move(from, to, value - kept);
    }
}

/// Returns false and moves nothing.
contract RefusingToken is PermitToken {
    function transferFrom(address, address, uint256) external pure override returns (bool) {
        return false;
    }
}

/// Returns false although it moves the money.
contract LyingToken is PermitToken {
    function transferFrom(address from, address to, uint256 value) external override returns (bool) {
        move(from, to, value);
        return false;
    }
}

/// Calls a target in the middle of a transfer.
contract ReenteringToken is PermitToken {
    address private target;
    bytes private data;
    bool public worked;

    function arm(address target_, bytes calldata data_) external {
        target = target_;
        data = data_;
    }

    function move(address from, address to, uint256 value) internal override {
        bytes memory once = data;
        data = "";
        if (once.length > 0) (worked,) = target.call(once);
        super.move(from, to, value);
    }
}

/// Emits any log on request, as a token with a bug or a hostile upgrade may.
contract NoisyToken {
    function balanceOf(address) external pure returns (uint256) {
        return 0;
    }

    function emitLog(bytes32[] memory topics, bytes memory data) external {
        uint256 count = topics.length;
        assembly {
            let t := add(topics, 32)
            let d := add(data, 32)
            let size := mload(data)
            switch count
            case 1 { log1(d, size, mload(t)) }
            case 2 { log2(d, size, mload(t), mload(add(t, 32))) }
            case 3 { log3(d, size, mload(t), mload(add(t, 32)), mload(add(t, 64))) }
            case 4 { log4(d, size, mload(t), mload(add(t, 32)), mload(add(t, 64)), mload(add(t, 96))) }
        }
    }
}
